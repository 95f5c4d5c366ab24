# METADATA
# title: Size of the batch by steps
# description: |
#   Leaves an engine a smaller batch while its memory has been filling for 3 s: the least load of that time counts.
#   Of an engine that preallocates its cache, device memory says nothing; its KV usage counts, and that of every
#   engine whose memory is unknown.
# custom:
#   row: B11
#   reads: [model.preallocates, readings.kv_floor, readings.memory_floor]
#   optional: [readings.kv_floor, readings.memory_floor]
package sluice.nodes.max_num_seqs

# Load below which an engine keeps its whole batch (B11).
whole_below := 0.75

# Load above which only the least is left of it (B11).
least_above := 0.85

# What is left between the two (B11).
reduced := 0.7

# What is left at least (B11).
least := 0.3

max_num_seqs contains 1 if load < whole_below

max_num_seqs contains reduced if {
	load >= whole_below
	load <= least_above
}

max_num_seqs contains least if load > least_above

memory := input.readings.memory_floor if input.model.preallocates == false

load := memory

load := input.readings.kv_floor if not memory
