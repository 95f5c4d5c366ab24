package sluice.rules.latency_test

import data.sluice.rules.latency

# The arithmetic is tested at fixed figures, so that moving the real ones needs no change here.
factor(class, readings) := left if {
	factors := latency.scale with input as {"tenant": {"sla_class": class}, "readings": readings}
		with latency.targets_ms as {"payment": 250, "gold": 400}
		with latency.least_factor as 0.5
		with latency.most_factor as 1.5
		with latency.growing_classes as {"payment"}
	some {"dimension": "qps", "factor": left} in factors
}

near(left, right) if abs(left - right) < 0.000001

test_figures_are_in_order if {
	every target_ms in latency.targets_ms {
		target_ms > 0
	}
	0 < latency.least_factor
	latency.least_factor <= 1
	latency.most_factor >= 1
	every class in latency.growing_classes {
		latency.targets_ms[class] > 0
	}
}

test_the_lower_class_makes_room_first if {
	latency.targets_ms.bronze <= latency.targets_ms.silver
	latency.targets_ms.silver <= latency.targets_ms.gold
}

test_a_rate_is_whole_on_target if {
	factor("payment", {"ttft_ms": 250}) == 1
	factor("gold", {"ttft_ms": 400}) == 1
}

# 1 - (325 - 250) / 250 = 0.7
test_a_late_class_is_slowed if {
	near(factor("payment", {"ttft_ms": 325}), 0.7)
}

# 1 - (500 - 250) / 250 = 0, lifted to 0.5: 800 a second become 400 and never 1200
test_a_class_twice_as_late_keeps_half if {
	factor("payment", {"ttft_ms": 500}) == 0.5
	800 * factor("payment", {"ttft_ms": 500}) == 400
	factor("payment", {"ttft_ms": 60000}) == 0.5
}

# 1 - (200 - 250) / 250 = 1.2
test_an_agreed_rate_grows_while_tokens_come_early if {
	near(factor("payment", {"ttft_ms": 200}), 1.2)
}

# 1 - (0 - 250) / 250 = 2, held at 1.5
test_an_agreed_rate_grows_by_half_at_most if {
	factor("payment", {"ttft_ms": 0}) == 1.5
	factor("payment", {"ttft_ms": 125}) == 1.5
}

# 1 - (200 - 400) / 400 = 1.5, held at 1
test_a_quota_that_is_a_limit_never_grows if {
	factor("gold", {"ttft_ms": 200}) == 1
}

# 1 - (520 - 400) / 400 = 0.7
test_a_quota_that_is_a_limit_is_slowed_too if {
	near(factor("gold", {"ttft_ms": 520}), 0.7)
}

test_a_class_without_a_target_is_left_alone if {
	not factor("standard", {"ttft_ms": 60000})
	latency.scale == set() with input as {"tenant": {}, "readings": {"ttft_ms": 60000}}
}

test_nothing_is_slowed_by_an_unknown_time if {
	not factor("payment", {"live": 1})
}
