# METADATA
# title: Quotas of tenants and prices of models
# description: |
#   A tenant's own limits, its rate for one model, and what one call of a model costs of them.
# custom:
#   row: B2, B5
#   reads: [tenant, model]
package sluice.rules.quota

# How far a rate for one model may burst over base x factor (B5).
burst := 1.2

# Requests per second within which a rate for one model is held (B5).
smallest_rate := 5

largest_rate := 50

# Service classes whose base rate is set by their agreement: the bounds above do not apply to them (B4).
unclamped_classes := {"payment", "query"}

limit contains {"bucket": "tenant", "dimension": dimension, "limit": input.tenant[dimension]} if {
	some dimension in ["qps", "tpm", "concurrency"]
	is_number(input.tenant[dimension])
}

limit contains {
	"bucket": "tenant_model",
	"dimension": "qps",
	"limit": min([bounded(model_rate), input.tenant.qps * burst]),
}

cost contains {
	"requests": price,
	"input": price,
	"output": price,
	"cached": price * input.model.cached_weight,
}

model_rate := (input.tenant.qps * input.tenant.rate_factors[input.model.id]) * burst

bounded(rate) := rate if unclamped

bounded(rate) := max([smallest_rate, min([largest_rate, rate])]) if not unclamped

unclamped if input.tenant.sla_class in unclamped_classes

own_price := input.tenant.costs[input.model.id]

# A tenant's own price of a model stands in place of the model's (B2).
price := own_price

price := input.model.cost if not own_price
