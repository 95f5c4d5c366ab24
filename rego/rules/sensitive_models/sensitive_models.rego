# METADATA
# title: Access to sensitive models
# description: |
#   A sensitive model opens only when the caller's roles and its attributes both agree and, where its spec asks for one, an
#   approval of exactly this model, action, purpose and subject is in force; every access is recorded.
# custom:
#   row: B16
#   reads: [tenant, model, subject, request, time]
#   when: model.sensitive
#   optional: [subject.attributes.region]
package sluice.rules.sensitive_models

rules := input.model.sensitive

deny contains refusal("sensitive_role", "no role of the subject opens this model") if not role_agrees

deny contains refusal("sensitive_action", "this model is not open for the action") if not action_agrees

deny contains refusal("sensitive_purpose", "this model is not open for the purpose") if {
	count(rules.purposes) > 0
	not purpose_agrees
}

deny contains refusal("sensitive_region", "this model is not open from the region") if {
	count(rules.regions) > 0
	not region_agrees
}

# A subject elsewhere does not get in on its tenant's region.
deny contains refusal("sensitive_region", "this model is not open from the region") if {
	count(rules.regions) > 0
	subject_region := input.subject.attributes.region
	not subject_region in rules.regions
}

deny contains refusal("sensitive_hours", "this model is closed at this hour of the tenant's day") if {
	rules.hours
	not hour_agrees
}

deny contains refusal("sensitive_clearance", "the subject's clearance is too low for this model") if {
	rules.clearance
	not clearance_agrees
}

deny contains refusal("approval_required", "this model needs an approval, and the request names none that is known") if {
	rules.approval
	not approval_known
}

deny contains refusal("approval_pending", "the approval is not answered yet") if {
	rules.approval
	input.subject.approval.state == "asked"
}

deny contains refusal("approval_refused", "the approval was refused") if {
	rules.approval
	input.subject.approval.state == "refused"
}

deny contains refusal("approval_revoked", "the approval was taken back") if {
	rules.approval
	input.subject.approval.state == "revoked"
}

deny contains refusal("approval_expired", "the time of the approval is over") if {
	rules.approval
	input.subject.approval.state == "expired"
}

deny contains refusal("approval_mismatch", "the approval is for another model, action, purpose or subject") if {
	rules.approval
	input.subject.approval
	not approval_covers
}

oblige contains {"code": "audit", "retention_days": rules.retention_days}

oblige contains {"code": "mask", "fields": rules.mask} if count(rules.mask) > 0

refusal(code, message) := {"code": code, "message": message, "status": 403}

role_agrees if {
	some role in input.subject.roles
	role in rules.roles
}

# Each agreement is a rule of its own: `not input.x in y` would be undefined, not true, where x is absent.
action_agrees if input.request.action in rules.actions

purpose_agrees if input.request.purpose in rules.purposes

region_agrees if input.tenant.region in rules.regions

hour_agrees if {
	rules.hours.from < rules.hours.to
	input.time.hour >= rules.hours.from
	input.time.hour < rules.hours.to
}

# Hours over midnight, for example from 22 to 6.
hour_agrees if {
	rules.hours.from >= rules.hours.to
	input.time.hour >= rules.hours.from
}

hour_agrees if {
	rules.hours.from >= rules.hours.to
	input.time.hour < rules.hours.to
}

# Any text is greater than any number in Rego, so the type counts too.
clearance_agrees if {
	is_number(input.subject.attributes.clearance)
	input.subject.attributes.clearance >= rules.clearance
}

approval_known if input.subject.approval.state in {"asked", "approved", "refused", "revoked", "expired"}

approval_covers if {
	input.subject.approval.model == input.model.id
	input.subject.approval.action == input.request.action
	input.subject.approval.subject in {"same", "everyone"}
	approval_purpose_agrees
}

approval_purpose_agrees if input.subject.approval.purpose == input.request.purpose

# An approval without a purpose is of a model whose spec declares none.
approval_purpose_agrees if not input.subject.approval.purpose
