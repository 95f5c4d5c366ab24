package sluice.rules.in_flight_test

import data.sluice.rules.in_flight

limit(readings) := limits if {
	limits := in_flight.limit with input as {"readings": readings}
}

shed(readings) := probabilities if {
	probabilities := in_flight.shed with input as {"readings": readings}
}

test_requests_in_flight_are_held_to_what_the_controllers_allow if {
	limit({"live": 2, "max_in_flight": 48}) == {{"bucket": "model", "dimension": "concurrency", "limit": 48}}
}

test_no_limit_where_no_controller_says if {
	limit({"live": 2}) == set()
}

# 1 - 0.75 = 0.25
test_what_is_not_let_in_is_shed if {
	shed({"live": 2, "admission": 0.75}) == {0.25}
	shed({"live": 2, "admission": 0}) == {1}
}

test_nothing_is_shed_while_all_are_let_in if {
	shed({"live": 2, "admission": 1}) == set()
	shed({"live": 2}) == set()
}
