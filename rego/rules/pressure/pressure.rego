# METADATA
# title: Pressure of the engines
# description: |
#   Sheds a share of the requests while a model's engines are nearly full, and all of them when they are.
# custom:
#   row: A2
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

# Share shed while no engine of the model is live (A2).
blind_shed := 0.5

default live := 0

live := input.readings.live

shed contains blind_shed if live == 0

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
