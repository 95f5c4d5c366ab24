# METADATA
# title: Rates by the memory of the engines, in steps
# description: |
#   Slows a model in two steps once the memory of its engines has been full for 3 s.
#   It is device memory where the engine takes it as it needs it, and the KV cache where all is taken at the start,
#   since device memory then stays flat near 90 %. Requests and tokens are slowed alike: tokens are what fills memory, and a
#   caller of few long requests is held by its tokens, one of many short ones by its requests.
# custom:
#   row: B11
#   reads: [model, readings]
#   optional: [readings.kv_floor, readings.memory_floor]
package sluice.rules.memory

# Share of memory from which a model is slowed (B11).
busy := 0.75

# Share of memory above which it is slowed most (B11).
full := 0.85

# What is left of the rates in the first step, and in the second (B11).
busy_factor := 0.7

full_factor := 0.3

scale contains {"dimension": dimension, "factor": factor} if some dimension in ["qps", "tpm"]

factor := busy_factor if {
	load >= busy
	load <= full
}

factor := full_factor if load > full

# The least of the last 3 s: one high reading is no full memory.
load := input.readings.memory_floor if memory_tells

load := input.readings.kv_floor if not memory_tells

memory_tells if {
	input.model.preallocates == false
	is_number(input.readings.memory_floor)
}
