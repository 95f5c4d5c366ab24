package sluice.rules.sensitive_models_test

import data.sluice.rules.sensitive_models

question := {
	"tenant": {"id": "bank", "region": "cn-east"},
	"model": {
		"id": "mdl-fin-risk-v3",
		"sensitive": {
			"actions": ["infer"],
			"roles": ["risk-analyst"],
			"purposes": ["credit"],
			"regions": ["cn-east"],
			"hours": {"from": 8, "to": 20},
			"clearance": 3,
			"mask": [],
			"approval": false,
			"retention_days": 365,
		},
	},
	"subject": {"roles": ["risk-analyst"], "attributes": {"clearance": 3}},
	"request": {"action": "infer", "purpose": "credit"},
	"time": {"minute": 0, "hour": 8, "weekday": "monday"},
}

# What the rule answers when one value of the good question is another.
denied(patches) := codes if {
	denials := sensitive_models.deny with input as json.patch(question, patches)
	codes := {denial.code | some denial in denials}
}

put(path, value) := {"op": "add", "path": path, "value": value}

drop(path) := {"op": "remove", "path": path}

test_allow_when_roles_and_attributes_agree if {
	denied([]) == set()
}

test_deny_is_a_403_with_code_and_message if {
	sensitive_models.deny == {{
		"code": "sensitive_role",
		"message": "no role of the subject opens this model",
		"status": 403,
	}} with input as json.patch(question, [put("/subject/roles", ["clerk"])])
}

test_deny_without_roles if {
	denied([drop("/subject/roles")]) == {"sensitive_role"}
}

test_deny_other_actions if {
	denied([put("/request/action", "train")]) == {"sensitive_action"}
	denied([drop("/request/action")]) == {"sensitive_action"}
}

test_deny_other_purposes if {
	denied([put("/request/purpose", "marketing")]) == {"sensitive_purpose"}
	denied([drop("/request/purpose")]) == {"sensitive_purpose"}
}

test_purposes_that_are_not_named_are_not_asked_for if {
	denied([put("/model/sensitive/purposes", []), drop("/request/purpose")]) == set()
}

test_deny_other_regions if {
	denied([put("/tenant/region", "us-west")]) == {"sensitive_region"}
	denied([drop("/tenant/region")]) == {"sensitive_region"}
}

test_deny_a_subject_elsewhere if {
	denied([put("/subject/attributes/region", "us-west")]) == {"sensitive_region"}
	denied([put("/subject/attributes/region", "cn-east")]) == set()
}

test_regions_that_are_not_named_are_not_asked_for if {
	denied([put("/model/sensitive/regions", []), drop("/tenant/region")]) == set()
}

# From 8 inclusive to 20 exclusive.
test_hours_open_and_close_on_the_hour if {
	denied([put("/time/hour", 7)]) == {"sensitive_hours"}
	denied([put("/time/hour", 19)]) == set()
	denied([put("/time/hour", 20)]) == {"sensitive_hours"}
	denied([drop("/time/hour")]) == {"sensitive_hours"}
}

test_hours_over_midnight if {
	night := put("/model/sensitive/hours", {"from": 22, "to": 6})
	denied([night, put("/time/hour", 23)]) == set()
	denied([night, put("/time/hour", 5)]) == set()
	denied([night, put("/time/hour", 6)]) == {"sensitive_hours"}
	denied([night, put("/time/hour", 21)]) == {"sensitive_hours"}
}

test_hours_that_are_not_named_are_not_asked_for if {
	denied([drop("/model/sensitive/hours"), drop("/time/hour")]) == set()
}

test_deny_a_clearance_that_is_low_absent_or_text if {
	denied([put("/subject/attributes/clearance", 2)]) == {"sensitive_clearance"}
	denied([drop("/subject/attributes/clearance")]) == {"sensitive_clearance"}
	denied([put("/subject/attributes/clearance", "9")]) == {"sensitive_clearance"}
}

approval := {"state": "approved", "model": "mdl-fin-risk-v3", "action": "infer", "purpose": "credit", "subject": "same"}

# What the rule answers where an approval is needed and this one is named.
denied_with(named, patches) := denied(array.concat([put("/model/sensitive/approval", true), put("/subject/approval", named)], patches))

test_deny_without_an_approval_that_is_known if {
	denied([put("/model/sensitive/approval", true)]) == {"approval_required"}
	denied([put("/model/sensitive/approval", true), drop("/subject")]) == {
		"approval_required",
		"sensitive_role",
		"sensitive_clearance",
	}
}

test_an_approval_is_not_asked_for_where_none_is_needed if {
	denied([put("/subject/approval", object.union(approval, {"state": "revoked"}))]) == set()
}

test_allow_with_an_approval_of_exactly_this if {
	denied_with(approval, []) == set()
	denied_with(object.union(approval, {"subject": "everyone"}), []) == set()
}

test_deny_while_it_is_not_in_force if {
	denied_with(object.union(approval, {"state": "asked"}), []) == {"approval_pending"}
	denied_with(object.union(approval, {"state": "refused"}), []) == {"approval_refused"}
	denied_with(object.union(approval, {"state": "revoked"}), []) == {"approval_revoked"}
	denied_with(object.union(approval, {"state": "expired"}), []) == {"approval_expired"}
}

test_deny_a_state_that_nobody_knows if {
	denied_with(object.union(approval, {"state": "APPROVED"}), []) == {"approval_required"}
	denied_with(object.remove(approval, ["state"]), []) == {"approval_required"}
}

test_deny_with_an_approval_of_something_else if {
	denied_with(object.union(approval, {"model": "mdl-pii-classifier"}), []) == {"approval_mismatch"}
	denied_with(object.union(approval, {"action": "train"}), []) == {"approval_mismatch"}
	denied_with(object.union(approval, {"purpose": "fraud"}), []) == {"approval_mismatch"}
	denied_with(object.union(approval, {"subject": "other"}), []) == {"approval_mismatch"}
}

test_deny_with_an_approval_that_says_less if {
	every field in ["model", "action", "subject"] {
		denied_with(object.remove(approval, [field]), []) == {"approval_mismatch"}
	}
}

test_an_approval_without_a_purpose_is_of_a_model_without_purposes if {
	open := [put("/model/sensitive/purposes", []), drop("/request/purpose")]
	denied_with(object.remove(approval, ["purpose"]), open) == set()
	denied_with(approval, open) == {"approval_mismatch"}
}

test_every_access_is_audited_for_the_named_days if {
	sensitive_models.oblige == {{"code": "audit", "retention_days": 365}} with input as question
}

test_fields_to_mask_are_named if {
	sensitive_models.oblige == {
		{"code": "audit", "retention_days": 365},
		{"code": "mask", "fields": ["email", "phone"]},
	} with input as json.patch(question, [put("/model/sensitive/mask", ["email", "phone"])])
}
