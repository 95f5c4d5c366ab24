package sluice.rules.liveness_test

import data.sluice.rules.liveness

# What is shed at a fixed share, so that moving the real one needs no change here.
shed(readings) := probabilities if {
	probabilities := liveness.shed with input as {"readings": readings} with liveness.blind_shed as 0.5
}

test_the_share_is_a_share if {
	liveness.blind_shed >= 0
	liveness.blind_shed <= 1
}

test_nothing_is_shed_with_a_live_engine if {
	shed({"live": 1, "known": 2}) == set()
	shed({"live": 1, "known": 2, "frozen": 1}) == set()
}

test_half_is_shed_without_a_live_engine if {
	shed({"live": 0, "known": 2, "frozen": 0}) == {0.5}
	shed({"live": 0, "known": 2}) == {0.5}
}

test_half_is_shed_without_any_reading if {
	shed({}) == {0.5}
}

test_all_is_shed_where_an_engine_is_frozen_and_none_is_live if {
	shed({"live": 0, "known": 2, "frozen": 2}) == {1}
	shed({"live": 0, "known": 2, "frozen": 1}) == {1}
}

test_all_is_shed_where_every_live_engine_is_avoided if {
	liveness.shed == {1} with input as {"readings": {"live": 2, "known": 2, "frozen": 0, "avoided": 2}}
	liveness.shed == set() with input as {"readings": {"live": 2, "known": 2, "frozen": 0, "avoided": 1}}
}
