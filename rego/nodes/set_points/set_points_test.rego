package sluice.nodes.set_points_test

import data.sluice.nodes.set_points

test_each_signal_has_an_aim if {
	set_points.set_point == {
		{"signal": "kv", "value": set_points.kv_aim},
		{"signal": "waiting", "value": set_points.waiting_aim},
		{"signal": "iteration_ms", "value": set_points.iteration_ms_aim},
	}
}

test_aims_can_be_met if {
	0 < set_points.kv_aim
	set_points.kv_aim < 1
	set_points.waiting_aim > 0
	set_points.iteration_ms_aim > 0
}
