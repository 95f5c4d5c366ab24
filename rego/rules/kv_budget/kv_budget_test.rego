package sluice.rules.kv_budget_test

import data.sluice.rules.kv_budget

# The arithmetic is tested at fixed figures, so that moving the real ones needs no change here.
limited(of, model, readings) := each if {
	limits := kv_budget.limit with input as {"model": model, "readings": readings}
		with kv_budget.share as 0.85
		with kv_budget.assumed_tokens as 1000
	some each in limits
	each.bucket == "model"
	each.dimension == of
}

limit(of, model, readings) := limited(of, model, readings).limit

in_flight(model, readings) := limit("tokens_in_flight", model, readings)

test_figures_are_shares_and_counts if {
	0 < kv_budget.share
	kv_budget.share <= 1
	kv_budget.assumed_tokens >= 1
}

# 0.85 x 10000 = 8500
test_a_share_of_the_free_room_may_be_taken if {
	in_flight({"id": "m"}, {"live": 2, "free_tokens": 10000}) == 8500
}

# 3000 + 0.85 x 10000 = 11500
test_what_is_held_already_is_not_counted_twice if {
	in_flight({"id": "m"}, {"live": 2, "free_tokens": 10000, "held_tokens": 3000}) == 11500
}

test_a_full_cache_leaves_what_is_held if {
	in_flight({"id": "m"}, {"live": 1, "free_tokens": 0, "held_tokens": 700}) == 700
	in_flight({"id": "m"}, {"live": 1, "free_tokens": 0}) == 0
}

# 0.85 x 101 = 85.85
test_tokens_are_whole if {
	in_flight({"id": "m"}, {"live": 1, "free_tokens": 101}) == 85
}

# 0.85 x 4000 x 2 = 6800
test_the_declared_cache_stands_in_for_unknown_room if {
	in_flight({"id": "m", "kv_tokens": 4000}, {"live": 2, "known": 3}) == 6800
}

# 0.85 x 1000 x 2 = 1700
test_undeclared_and_unknown_room_is_assumed_and_never_infinite if {
	in_flight({"id": "m"}, {"live": 2, "known": 3}) == 1700
}

# 0.85 x 4000 x 3 = 10200
test_known_engines_count_where_none_is_live if {
	in_flight({"id": "m", "kv_tokens": 4000}, {"live": 0, "known": 3}) == 10200
}

# 0.85 x 4000 = 3400
test_a_model_without_a_known_engine_has_the_room_of_one if {
	in_flight({"id": "m", "kv_tokens": 4000}, {"live": 0, "known": 0}) == 3400
	in_flight({"id": "m", "kv_tokens": 4000}, {}) == 3400
}

# 0.85 x 8000 = 6800
test_what_no_cache_holds_is_refused_for_good if {
	limit("request_tokens", {"id": "m", "kv_tokens": 4000}, {"live": 1, "capacity_tokens_max": 8000}) == 6800
}

# 0.85 x 4000 = 3400
test_the_declared_cache_bounds_a_request_where_no_page_tells if {
	limit("request_tokens", {"id": "m", "kv_tokens": 4000}, {"live": 1}) == 3400
}

test_a_request_is_not_refused_for_good_by_an_assumption if {
	not limit("request_tokens", {"id": "m"}, {"live": 1, "free_tokens": 100})
}

# An empty cache takes the largest request that is not refused for good.
test_the_largest_request_fits_an_empty_cache if {
	readings := {"live": 1, "free_tokens": 8000, "capacity_tokens_max": 8000}
	limit("request_tokens", {"id": "m"}, readings) == in_flight({"id": "m"}, readings)
}

# 700 are held and nothing is free; two empty caches have 0.85 x 8000 x 2 = 13600
test_who_finds_no_room_now_may_find_it_later if {
	limited(
		"tokens_in_flight",
		{"id": "m"},
		{"live": 2, "free_tokens": 0, "held_tokens": 700, "capacity_tokens_max": 8000},
	) == {"bucket": "model", "dimension": "tokens_in_flight", "limit": 700, "burst": 13600}
}

# Free room is told and a cache of 1000 is only assumed
test_an_assumption_takes_nothing_of_what_is_told if {
	limited("tokens_in_flight", {"id": "m"}, {"live": 1, "free_tokens": 10000}).burst == 8500
}
