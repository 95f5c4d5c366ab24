package sluice.nodes.max_num_seqs_line_test

import data.sluice.nodes.max_num_seqs_line

# The arithmetic is tested on a fixed line, so that moving the real one needs no change here.
factors(preallocates, readings) := found if {
	found := max_num_seqs_line.max_num_seqs with input as {"model": {"preallocates": preallocates}, "readings": readings}
		with max_num_seqs_line.from as 0.8
		with max_num_seqs_line.slope as 5
		with max_num_seqs_line.least as 0.3
}

near(factors, wanted) if {
	count(factors) == 1
	some factor in factors
	abs(factor - wanted) < 0.000001
}

test_the_line_is_one if {
	0 < max_num_seqs_line.from
	max_num_seqs_line.from < 1
	max_num_seqs_line.slope > 0
	max_num_seqs_line.least > 0
	max_num_seqs_line.least <= 1
}

test_the_whole_batch_is_left_up_to_the_line if {
	factors(false, {"memory": 0}) == {1}
	factors(false, {"memory": 0.8}) == {1}
}

# 1 - (0.9 - 0.8) * 5 = 0.5
test_half_of_the_batch_is_left_in_the_middle if {
	near(factors(false, {"memory": 0.9}), 0.5)
	near(factors(true, {"kv": 0.9}), 0.5)
}

# 1 - (0.94 - 0.8) * 5 = 0.3
test_the_least_is_left_at_the_end if {
	near(factors(false, {"memory": 0.94}), 0.3)
	factors(false, {"memory": 0.95}) == {0.3}
	factors(false, {"memory": 1}) == {0.3}
}

test_memory_of_an_engine_that_preallocates_says_nothing if {
	factors(true, {"memory": 0.95, "kv": 0.1}) == {1}
	factors(true, {"memory": 0.95}) == set()
}

test_kv_usage_counts_where_memory_is_unknown if {
	factors(false, {"kv": 1}) == {0.3}
	factors(false, {"kv": 1, "memory": 0}) == {1}
}
