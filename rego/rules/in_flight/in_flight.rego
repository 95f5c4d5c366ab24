# METADATA
# title: Work in flight
# description: |
#   Holds a model's requests in flight to what the controllers of its engines allow, and sheds what they do not let in.
#   The controllers follow the cache, the queue and the time of a step; their set points are in rego/nodes.
# custom:
#   row: A3
#   reads: [readings]
#   optional: [readings.max_in_flight, readings.admission]
package sluice.rules.in_flight

# At least 1 for each engine: no controller goes below, so that something shows when an engine is well again.
limit contains {"bucket": "model", "dimension": "concurrency", "limit": input.readings.max_in_flight}

shed contains 1 - input.readings.admission if input.readings.admission < 1
