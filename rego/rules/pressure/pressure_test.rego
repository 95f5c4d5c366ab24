package sluice.rules.pressure_test

import data.sluice.rules.pressure

# The arithmetic is tested at fixed watermarks, so that moving the real ones needs no change here.
shed(readings) := probabilities if {
	probabilities := pressure.shed with input as {"readings": readings}
		with pressure.high_watermark as 0.8
		with pressure.panic_watermark as 0.92
		with pressure.least_shed as 0.1
		with pressure.blind_shed as 0.5
		with pressure.waiting_per_engine as 20
}

test_watermarks_are_in_order if {
	0 < pressure.high_watermark
	pressure.high_watermark < pressure.panic_watermark
	pressure.panic_watermark <= 1
}

test_shares_are_shares if {
	every share in [pressure.least_shed, pressure.blind_shed] {
		share >= 0
		share <= 1
	}
	pressure.waiting_per_engine >= 0
}

test_nothing_is_shed_below_the_high_watermark if {
	shed({"live": 2, "kv_mean": 0.799, "waiting": 40}) == set()
}

# (0.80 - 0.80) / 0.12 = 0, so the least share
test_the_least_share_is_shed_at_the_high_watermark if {
	shed({"live": 2, "kv_mean": 0.8, "waiting": 0}) == {0.1}
}

# (0.86 - 0.80) / 0.12 = 0.5
test_half_is_shed_in_the_middle if {
	some share in shed({"live": 2, "kv_mean": 0.86, "waiting": 0})
	abs(share - 0.5) < 0.000001
}

test_all_is_shed_at_the_panic_watermark if {
	shed({"live": 2, "kv_mean": 0.92, "waiting": 0}) == {1}
}

test_all_is_shed_when_too_many_wait if {
	shed({"live": 2, "kv_mean": 0.1, "waiting": 41}) == {1}
}

test_waiting_decides_for_engines_without_a_cache_reading if {
	shed({"live": 1, "waiting": 20}) == set()
	shed({"live": 1, "waiting": 21}) == {1}
}

test_half_is_shed_without_a_live_engine if {
	shed({"live": 0, "known": 2}) == {0.5}
}

test_half_is_shed_without_any_reading if {
	shed({}) == {0.5}
}
