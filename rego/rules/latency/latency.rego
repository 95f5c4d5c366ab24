# METADATA
# title: Rates by the time to the first token
# description: |
#   Slows a service class by as much as first tokens come later than its target, to half at most, and lets classes whose rate
#   is set by an agreement have up to half as much again while they come earlier.
# custom:
#   row: B4
#   reads: [tenant.sla_class, readings.ttft_ms]
#   optional: [readings.ttft_ms]
package sluice.rules.latency

# Milliseconds to the first token from which each class is slowed (B4). Payment and query have rates by agreement, far above
# the others': what they send is what moves the time. Among the rest the lower class makes room first, and none before there
# are queues. A class that is not here, such as standard, was promised no time and is not slowed by it.
targets_ms := {"payment": 250, "query": 500, "bronze": 1000, "silver": 1500, "gold": 2000}

# The least and the most that is left of a rate (B4).
least_factor := 0.5

most_factor := 1.5

# Classes that may have more than their quota says: theirs is a base to adjust (B4), everybody else's is a limit (B2).
growing_classes := {"payment", "query"}

scale contains {"dimension": "qps", "factor": min([largest, max([least_factor, 1 - late])])}

# By how many targets first tokens are late; negative where they are early.
late := (input.readings.ttft_ms - target_ms) / target_ms

target_ms := targets_ms[input.tenant.sla_class]

largest := most_factor if input.tenant.sla_class in growing_classes

largest := 1 if not input.tenant.sla_class in growing_classes
