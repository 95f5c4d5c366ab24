# METADATA
# title: Size of the batch by a line
# description: |
#   Takes five per cent of an engine's batch for each per cent of its load above 80 %, down to the least, by the load of
#   this moment. The steps of `max_num_seqs` are the default; put this rule on in their place, or in shadow beside them.
# custom:
#   row: B11
#   reads: [model.preallocates, readings.kv, readings.memory]
#   optional: [readings.kv, readings.memory]
#   off: true
package sluice.nodes.max_num_seqs_line

# Load from which the batch shrinks (B11).
from := 0.8

# What of the batch goes for the whole of the load above it (B11).
slope := 5

# What is left at least (B11).
least := 0.3

max_num_seqs contains max([least, min([1, 1 - ((load - from) * slope)])])

memory := input.readings.memory if input.model.preallocates == false

load := memory

load := input.readings.kv if not memory
