# METADATA
# title: Rates by the memory of the engines, along a line
# description: |
#   Stands in place of the steps of `memory` for who wants no jumps: `policy.rules: {memory: off, memory_line: on}`.
#   It follows the reading of the moment, since a line answers a small change with a small change.
# custom:
#   row: B11
#   reads: [model, readings]
#   off: true
#   optional: [readings.kv_mean, readings.memory]
package sluice.rules.memory_line

# Share of memory from which a model is slowed (B11).
start := 0.80

# What is taken from the rates for each share of memory above it (B11): 5 times as much.
slope := 5

# The least that is left of the rates (B11).
least_factor := 0.3

scale contains {"dimension": dimension, "factor": factor} if some dimension in ["qps", "tpm"]

factor := min([1, max([least_factor, 1 - ((load - start) * slope)])])

load := input.readings.memory if memory_tells

load := input.readings.kv_mean if not memory_tells

memory_tells if {
	input.model.preallocates == false
	is_number(input.readings.memory)
}
