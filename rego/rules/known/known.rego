# METADATA
# title: Known tenants and models
# description: Refuses a tenant without a quota and a model that no spec describes.
# custom:
#   row: B12
#   reads: [tenant, model]
package sluice.rules.known

deny contains {
	"code": "unknown_tenant",
	"message": "the tenant has no quota",
	"status": 403,
} if {
	not input.tenant.id
}

deny contains {
	"code": "unknown_model",
	"message": "no model spec has this id",
	"status": 403,
} if {
	not input.model.id
}
