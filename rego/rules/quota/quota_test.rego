package sluice.rules.quota_test

import data.sluice.rules.quota

llama := {"id": "llama", "cost": 5, "cached_weight": 0.1}

prod := {"id": "prod", "qps": 50, "tpm": 30000, "concurrency": 8, "sla_class": "standard"}

# The arithmetic is tested at fixed bounds, so that moving the real ones needs no change here.
model_rate(tenant) := rate if {
	limits := quota.limit with input as {"tenant": tenant, "model": llama}
		with quota.burst as 1.2
		with quota.smallest_rate as 5
		with quota.largest_rate as 50
		with quota.unclamped_classes as {"payment"}
	some {"bucket": "tenant_model", "dimension": "qps", "limit": rate} in limits
}

test_bounds_are_in_order if {
	quota.burst >= 1
	quota.smallest_rate < quota.largest_rate
	count(quota.unclamped_classes) >= 0
}

test_limit_each_dimension_the_quota_names if {
	quota.limit == {
		{"bucket": "tenant", "dimension": "qps", "limit": 50},
		{"bucket": "tenant", "dimension": "tpm", "limit": 30000},
		{"bucket": "tenant", "dimension": "concurrency", "limit": 8},
	} with input as {"tenant": prod, "model": llama}
}

test_limit_of_zero_stays_a_limit if {
	quota.limit == {{"bucket": "tenant", "dimension": "concurrency", "limit": 0}} with input as {
		"tenant": {"id": "x", "concurrency": 0},
		"model": llama,
	}
}

test_no_limit_without_a_quota if {
	quota.limit == set() with input as {"tenant": {}, "model": llama}
}

# 20 x 0.8 x 1.2 = 19.2
test_rate_of_one_model_follows_its_factor if {
	model_rate(object.union(prod, {"qps": 20, "rate_factors": {"llama": 0.8}})) == 19.2
}

# 40 x 2.4 x 1.2 = 115.2, held at 50, and 40 x 1.2 = 48 is less still
test_rate_of_one_model_never_beats_the_tenants_burst if {
	model_rate(object.union(prod, {"qps": 40, "rate_factors": {"llama": 2.4}})) == 48
}

# 50 x 2 x 1.2 = 120, held at 50; the tenant's burst is 60
test_rate_of_one_model_is_held_at_most if {
	model_rate(object.union(prod, {"rate_factors": {"llama": 2}})) == 50
}

test_a_tenant_without_a_class_is_held_too if {
	model_rate(object.remove(object.union(prod, {"rate_factors": {"llama": 2}}), ["sla_class"])) == 50
}

# 5 x 0.8 x 1.2 = 4.8, lifted to 5; the tenant's burst is 6
test_rate_of_one_model_is_held_at_least if {
	model_rate(object.union(prod, {"qps": 5, "rate_factors": {"llama": 0.8}})) == 5
}

# 2 x 1 x 1.2 = 2.4, would be lifted to 5; the tenant's burst is 2.4
test_the_lower_bound_never_lifts_a_small_tenant if {
	model_rate(object.union(prod, {"qps": 2, "rate_factors": {"llama": 1}})) == 2.4
}

# 800 x 0.8 x 1.2 = 768, far over 50
test_classes_with_an_agreement_are_not_held if {
	model_rate(object.union(prod, {"qps": 800, "sla_class": "payment", "rate_factors": {"llama": 0.8}})) == 768
}

test_cost_is_the_models if {
	quota.cost == {{"requests": 5, "input": 5, "output": 5, "cached": 0.5}} with input as {"tenant": prod, "model": llama}
}

test_cost_of_the_tenant_stands_in_place_of_the_models if {
	quota.cost == {{"requests": 3, "input": 3, "output": 3, "cached": 0.3}} with input as {
		"tenant": object.union(prod, {"costs": {"llama": 3}}),
		"model": llama,
	}
}
