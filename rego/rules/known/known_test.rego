package sluice.rules.known_test

import data.sluice.rules.known

test_allow_known_tenant_and_model if {
	known.deny == set() with input as {"tenant": {"id": "a"}, "model": {"id": "m"}}
}

test_deny_unknown_tenant if {
	known.deny == {{
		"code": "unknown_tenant",
		"message": "the tenant has no quota",
		"status": 403,
	}} with input as {"tenant": {}, "model": {"id": "m"}}
}

test_deny_unknown_model if {
	known.deny == {{
		"code": "unknown_model",
		"message": "no model spec has this id",
		"status": 403,
	}} with input as {"tenant": {"id": "a"}, "model": {}}
}

test_deny_both_on_an_empty_question if {
	{denial.code | some denial in known.deny} == {"unknown_tenant", "unknown_model"} with input as {}
}
