package sluice.nodes.max_num_seqs_test

import data.sluice.nodes.max_num_seqs

# The arithmetic is tested at fixed steps, so that moving the real ones needs no change here.
factors(preallocates, readings) := found if {
	found := max_num_seqs.max_num_seqs with input as {"model": {"preallocates": preallocates}, "readings": readings}
		with max_num_seqs.whole_below as 0.75
		with max_num_seqs.least_above as 0.85
		with max_num_seqs.reduced as 0.7
		with max_num_seqs.least as 0.3
}

test_steps_are_in_order if {
	0 < max_num_seqs.whole_below
	max_num_seqs.whole_below <= max_num_seqs.least_above
	max_num_seqs.least_above < 1
	max_num_seqs.least > 0
	max_num_seqs.least <= max_num_seqs.reduced
	max_num_seqs.reduced <= 1
}

test_each_step_has_its_factor if {
	factors(false, {"memory_floor": 0}) == {1}
	factors(false, {"memory_floor": 0.749}) == {1}
	factors(false, {"memory_floor": 0.75}) == {0.7}
	factors(false, {"memory_floor": 0.85}) == {0.7}
	factors(false, {"memory_floor": 0.851}) == {0.3}
	factors(false, {"memory_floor": 1}) == {0.3}
}

test_memory_of_an_engine_that_preallocates_says_nothing if {
	factors(true, {"memory_floor": 0.95, "kv_floor": 0.1}) == {1}
	factors(true, {"memory_floor": 0.1, "kv_floor": 0.8}) == {0.7}
	factors(true, {"memory_floor": 0.95}) == set()
}

test_kv_usage_counts_where_memory_is_unknown if {
	factors(false, {"kv_floor": 0.9}) == {0.3}
	factors(false, {"kv_floor": 0.9, "memory_floor": 0.5}) == {1}
}

test_an_engine_of_which_nothing_is_said_is_taken_for_one_that_preallocates if {
	max_num_seqs.max_num_seqs == {0.3} with input as {"model": {}, "readings": {"memory_floor": 0.1, "kv_floor": 0.9}}
}

test_nothing_is_answered_where_nothing_is_known if {
	factors(false, {}) == set()
	factors(true, {}) == set()
}
