"""The reason codes that Sluice itself gives; rules add their own. docs/reference/reasons.md is generated from here."""

CODES = {
    "unknown": "The tenant has no quota, or no model spec has this id, and no rule said so; without them nothing would be limited.",
    "qps_exceeded": "Requests per second of the named bucket are spent; come back after frees_in_ms.",
    "tpm_exceeded": "Tokens per minute of the named bucket are spent; come back after frees_in_ms.",
    "concurrency_exceeded": "As many requests as the named bucket allows are in flight.",
    "tokens_in_flight_exceeded": "The tokens reserved by running requests fill the named bucket.",
    "request_tokens_exceeded": "One request may not be this large; waiting cannot help.",
    "over_capacity": "The request is larger than the whole bucket; waiting cannot help. Ask for fewer tokens.",
    "closed": "A rule closed this dimension for now (factor 0).",
    "shed": "Load is shed with the probability a rule gave (KV cache or queue under pressure, or no live node).",
    "policy_unavailable": "The policy engine does not answer and no earlier answer may stand in.",
    "policy_timeout": "A rule took longer than opa.timeout_ms; it fails closed.",
    "policy_conflict": "A rule gave two values where one is allowed; it fails closed until it is corrected.",
    "policy_undefined": "No rule gives a limit for a dimension that the quota names, or the rules gave no answer.",
    "policy_invalid": "A rule gave an output of the wrong shape or type; it fails closed until it is corrected.",
    "audit_unavailable": "The decision must be in the log first, and the log cannot be written; what was spent is refunded.",
    "lease_records_full": "The bound on lease records is reached; nothing was spent.",
    "draining": "This replica is shutting down; ask another one.",
}
"""Code: meaning and remedy."""

EXCEEDED = {
    "qps": "requests per second",
    "tpm": "tokens per minute",
    "concurrency": "requests in flight",
    "tokens_in_flight": "tokens in flight",
    "request_tokens": "tokens in one request",
}
"""Dimension: how its unit reads in a sentence."""
