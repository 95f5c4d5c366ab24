# METADATA
# title: Room in the caches of the engines
# description: |
#   Holds the tokens that a model has in flight to what still fits the KV caches of its engines, less a reserve.
#   The limit is a bucket, so a hundred requests between two readings cannot each take the same room.
#   Who finds no room is asked to wait; who would find none in empty caches is refused for good.
# custom:
#   row: B6
#   reads: [model, readings]
#   optional:
#     - readings.live
#     - readings.known
#     - readings.free_tokens
#     - readings.held_tokens
#     - readings.capacity_tokens_max
package sluice.rules.kv_budget

# Share of the free room that may be promised (B6): what is in flight goes on growing until the next reading.
share := 0.85

# Tokens that one engine holds where neither a page nor the model spec tells: unknown is never infinite room. 8 GiB at 128 KiB a
# token (2 x 32 layers x 8 KV heads x 128 x 2 bytes), which is what a card of 24 GiB has left beside a model of that shape.
# Who knows better declares `kv_tokens`.
assumed_tokens := 65536

limit contains {
	"bucket": "model",
	"dimension": "tokens_in_flight",
	"limit": floor(room),
	"burst": max([floor(room), floor(empty_room)]),
}

limit contains {"bucket": "model", "dimension": "request_tokens", "limit": floor(share * told_cache)}

default held := 0

# Of the room in use some is held by requests that the bucket counts already.
held := input.readings.held_tokens

room := held + (share * input.readings.free_tokens) if free_known

room := empty_room if not free_known

free_known if is_number(input.readings.free_tokens)

# The room of empty caches.
empty_room := (share * cache) * engines

# An engine that is silent for a while keeps its cache, so known ones count where none is live.
default engines := 1

engines := input.readings.live if any_live

engines := max([1, input.readings.known]) if not any_live

any_live if input.readings.live > 0

cache := told_cache

cache := assumed_tokens if not told_cache

# Tokens that the largest cache holds: by the pages, else as the model spec declares.
told_cache := input.readings.capacity_tokens_max

told_cache := input.model.kv_tokens if not capacity_known

capacity_known if is_number(input.readings.capacity_tokens_max)
