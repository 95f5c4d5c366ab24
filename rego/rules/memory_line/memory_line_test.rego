package sluice.rules.memory_line_test

import data.sluice.rules.memory_line

# The arithmetic is tested on a fixed line, so that moving the real one needs no change here.
factor(preallocates, readings) := left if {
	factors := memory_line.scale with input as {"model": {"id": "m", "preallocates": preallocates}, "readings": readings}
		with memory_line.start as 0.8
		with memory_line.slope as 5
		with memory_line.least_factor as 0.3
	some {"dimension": "qps", "factor": left} in factors
	{"dimension": "tpm", "factor": left} in factors
}

near(left, right) if abs(left - right) < 0.000001

test_figures_are_in_order if {
	0 < memory_line.start
	memory_line.start < 1
	memory_line.slope > 0
	0 < memory_line.least_factor
	memory_line.least_factor < 1
}

test_rates_are_whole_up_to_the_start if {
	factor(false, {"memory": 0}) == 1
	factor(false, {"memory": 0.8}) == 1
}

# 1 - (0.86 - 0.8) x 5 = 0.7
test_rates_fall_along_the_line if {
	near(factor(false, {"memory": 0.86}), 0.7)
}

# 1 - (0.94 - 0.8) x 5 = 0.3; 1 - (1 - 0.8) x 5 = 0, lifted to 0.3
test_rates_fall_no_further_than_the_least if {
	near(factor(false, {"memory": 0.94}), 0.3)
	factor(false, {"memory": 1}) == 0.3
}

test_the_cache_tells_for_engines_that_take_all_memory if {
	factor(true, {"memory": 1, "kv_mean": 0.5}) == 1
	not factor(true, {"memory": 1})
}

test_the_cache_tells_where_memory_is_unknown if {
	factor(false, {"kv_mean": 1}) == 0.3
}

test_nothing_is_slowed_without_a_reading if {
	not factor(false, {"live": 1})
}
