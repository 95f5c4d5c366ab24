package sluice.rules.memory_test

import data.sluice.rules.memory

# The arithmetic is tested at fixed steps, so that moving the real ones needs no change here.
scale(preallocates, readings) := factors if {
	factors := memory.scale with input as {"model": {"id": "m", "preallocates": preallocates}, "readings": readings}
		with memory.busy as 0.75
		with memory.full as 0.85
		with memory.busy_factor as 0.7
		with memory.full_factor as 0.3
}

both(factor) := {{"dimension": "qps", "factor": factor}, {"dimension": "tpm", "factor": factor}}

test_steps_are_in_order if {
	0 < memory.busy
	memory.busy < memory.full
	memory.full < 1
	0 < memory.full_factor
	memory.full_factor < memory.busy_factor
	memory.busy_factor < 1
}

test_nothing_is_slowed_below_the_first_step if {
	scale(false, {"memory_floor": 0.749}) == set()
}

test_the_first_step_holds_from_edge_to_edge if {
	scale(false, {"memory_floor": 0.75}) == both(0.7)
	scale(false, {"memory_floor": 0.85}) == both(0.7)
}

test_the_second_step_holds_above_its_edge if {
	scale(false, {"memory_floor": 0.851}) == both(0.3)
	scale(false, {"memory_floor": 1}) == both(0.3)
}

test_device_memory_says_nothing_of_an_engine_that_takes_all_of_it if {
	scale(true, {"memory_floor": 0.9, "kv_floor": 0.1}) == set()
	scale(true, {"memory_floor": 0.1, "kv_floor": 0.9}) == both(0.3)
	scale(true, {"memory_floor": 0.9}) == set()
}

test_device_memory_is_what_counts_where_it_is_taken_as_needed if {
	scale(false, {"memory_floor": 0.8, "kv_floor": 0.9}) == both(0.7)
}

test_the_cache_tells_where_device_memory_is_unknown if {
	scale(false, {"kv_floor": 0.9}) == both(0.3)
}

test_a_model_that_does_not_say_how_it_takes_memory_is_read_by_its_cache if {
	memory.scale == both(0.3) with input as {"model": {"id": "m"}, "readings": {"memory_floor": 0.1, "kv_floor": 0.9}}
		with memory.full_factor as 0.3
}

test_a_full_moment_slows_nothing if {
	scale(false, {"memory": 0.99, "kv_mean": 0.99}) == set()
}

test_nothing_is_slowed_without_a_reading if {
	scale(false, {}) == set()
}
