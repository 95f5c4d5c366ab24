package sluice.nodes.isolation_test

import data.sluice.nodes.isolation

avoid(preallocates, readings) := found if {
	found := isolation.avoid with input as {"model": {"preallocates": preallocates}, "readings": readings}
		with isolation.most_memory as 0.92
}

test_most_memory_is_a_share if {
	0 < isolation.most_memory
	isolation.most_memory < 1
}

test_avoid_a_node_whose_memory_is_nearly_full if {
	avoid(false, {"memory_floor": 0.921}) == {{
		"code": "memory_full",
		"message": "the node's device memory has been nearly full for 3 s",
	}}
}

test_use_a_node_with_memory_left if {
	avoid(false, {"memory_floor": 0.92}) == set()
}

test_use_a_node_whose_engine_preallocates if {
	avoid(true, {"memory_floor": 0.99}) == set()
}

test_use_a_node_of_unknown_memory if {
	avoid(false, {}) == set()
}
