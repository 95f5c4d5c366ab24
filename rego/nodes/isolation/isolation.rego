# METADATA
# title: Isolation of a node without memory
# description: |
#   Keeps new requests away from a node whose device memory has been nearly full for 3 s: the next allocation would end
#   everybody's requests there. Of an engine that preallocates its cache, device memory says nothing. Nor does it of one
#   whose allocator keeps what it once had, or whose weights fill the card: such a node would stay isolated for good, so
#   the rule is off until somebody who knows the engines turns it on.
# custom:
#   row: C13
#   off: true
#   reads: [model.preallocates, readings.memory_floor]
#   optional: [readings.memory_floor]
package sluice.nodes.isolation

# Device memory in use above which a node is isolated (C13).
most_memory := 0.92

avoid contains {
	"code": "memory_full",
	"message": "the node's device memory has been nearly full for 3 s",
} if {
	input.model.preallocates == false
	input.readings.memory_floor > most_memory
}
