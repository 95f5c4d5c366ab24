# METADATA
# title: Pressure of the engines
# description: |
#   Slows a model's requests the fuller its caches and the longer its queues are, sheds a share of them while the caches are
#   nearly full, and all of them when they are.
# custom:
#   row: A2, C10
#   reads: [readings]
#   optional: [readings.live, readings.kv_mean, readings.waiting]
package sluice.rules.pressure

# Share of the KV cache from which some requests are shed (A2).
high_watermark := 0.80

# Share of the KV cache from which every request is shed (A2).
panic_watermark := 0.92

# Share shed as soon as the high watermark is reached (A2).
least_shed := 0.10

# Waiting requests per live engine above which every request is shed (A2).
waiting_per_engine := 20

# What a full cache takes from the rate of requests (C10).
cache_weight := 0.6

# What a long queue takes from it (C10).
queue_weight := 0.4

# Waiting requests per live engine from which a queue is long (C10).
long_queue := 10

# The least that is left of the rate. C10 asks for one request a second at any base: a factor changes the price, which is never
# more than a full bucket, and that fills in a second. So it need only be above 0, which would close the bucket.
least_factor := 0.0001

live := input.readings.live

# What is not known takes nothing, as long as the other is.
taken["cache"] := cache_weight * input.readings.kv_mean if live > 0

taken["queue"] := queue_weight * min([(input.readings.waiting / live) / long_queue, 1]) if live > 0

scale contains {"dimension": "qps", "factor": max([least_factor, 1 - sum([part | some part in taken])])} if {
	count(taken) > 0
}

shed contains max([least_shed, (input.readings.kv_mean - high_watermark) / (panic_watermark - high_watermark)]) if {
	live > 0
	input.readings.kv_mean >= high_watermark
	input.readings.kv_mean < panic_watermark
}

shed contains 1 if {
	live > 0
	input.readings.kv_mean >= panic_watermark
}

shed contains 1 if {
	live > 0
	input.readings.waiting > waiting_per_engine * live
}
