# METADATA
# title: Aims of the in-flight controller
# description: |
#   Where the controller of requests in flight holds an engine. The tightest signal counts. Within 5 % of its aim nothing starts.
#   The same for every model; the model's id is read so that one may get aims of its own.
# custom:
#   row: A2, A3
#   reads: [model.id]
package sluice.nodes.set_points

# Share of the KV cache: the high watermark from which requests are shed (A2). Above it the
# controller lets in less at once; it cuts what may be in flight from 0.84 on, where its dead band ends.
kv_aim := 0.80

# Waiting requests: the backlog that counts as long (C10).
waiting_aim := 10

# Milliseconds of one decode step, which is the time between two tokens of every stream: ten tokens a second are about
# twice what people read, and beyond that a larger batch makes all of them wait for the few that it adds.
iteration_ms_aim := 100

set_point contains {"signal": "kv", "value": kv_aim}

set_point contains {"signal": "waiting", "value": waiting_aim}

set_point contains {"signal": "iteration_ms", "value": iteration_ms_aim}
