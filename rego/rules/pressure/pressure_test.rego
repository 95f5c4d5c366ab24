package sluice.rules.pressure_test

import data.sluice.rules.pressure

# The arithmetic is tested at fixed watermarks, so that moving the real ones needs no change here.
shed(readings) := probabilities if {
	probabilities := pressure.shed with input as {"readings": readings}
		with pressure.high_watermark as 0.8
		with pressure.panic_watermark as 0.92
		with pressure.least_shed as 0.1
		with pressure.waiting_per_engine as 20
}

test_watermarks_are_in_order if {
	0 < pressure.high_watermark
	pressure.high_watermark < pressure.panic_watermark
	pressure.panic_watermark <= 1
}

test_shares_are_shares if {
	pressure.least_shed >= 0
	pressure.least_shed <= 1
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

test_nothing_is_shed_that_cannot_be_seen if {
	shed({"live": 0, "known": 2}) == set()
	shed({}) == set()
}

# What is left of the rate of requests, or undefined.
factor(readings) := left if {
	factors := pressure.scale with input as {"readings": readings}
		with pressure.cache_weight as 0.6
		with pressure.queue_weight as 0.4
		with pressure.long_queue as 10
		with pressure.least_factor as 0.0001
	some {"dimension": "qps", "factor": left} in factors
}

near(left, right) if abs(left - right) < 0.000001

test_weights_take_no_more_than_all if {
	pressure.cache_weight >= 0
	pressure.queue_weight >= 0
	pressure.cache_weight + pressure.queue_weight <= 1
	pressure.long_queue > 0
	pressure.least_factor > 0
}

test_idle_engines_leave_the_whole_rate if {
	factor({"live": 2, "kv_mean": 0, "waiting": 0}) == 1
}

# 1 - 0.6 x 0.5 = 0.7
test_a_fuller_cache_slows if {
	near(factor({"live": 2, "kv_mean": 0.5, "waiting": 0}), 0.7)
}

# 10 waiting for 2 engines are 5 each: 1 - 0.6 x 0.5 - 0.4 x 0.5 = 0.5
test_a_queue_slows_by_what_waits_for_each_engine if {
	near(factor({"live": 2, "kv_mean": 0.5, "waiting": 10}), 0.5)
}

# 1 - 0.6 x 0.5 - 0.4 = 0.3
test_a_queue_takes_no_more_than_its_weight if {
	near(factor({"live": 2, "kv_mean": 0.5, "waiting": 20}), 0.3)
	near(factor({"live": 2, "kv_mean": 0.5, "waiting": 2000}), 0.3)
}

# 1 - 0.6 - 0.4 = 0, lifted to the least
test_a_rate_is_never_closed if {
	factor({"live": 1, "kv_mean": 1, "waiting": 10}) == 0.0001
}

# 1 - 0.6 x 0.5 = 0.7, and 1 - 0.4 x 0.5 = 0.8
test_what_is_unknown_takes_nothing_while_the_other_is_known if {
	near(factor({"live": 1, "kv_mean": 0.5}), 0.7)
	near(factor({"live": 1, "waiting": 5}), 0.8)
}

test_nothing_is_slowed_where_nothing_is_known if {
	not factor({"live": 1})
	not factor({"live": 0, "known": 2})
	not factor({})
}
