"""Why a question has no terms: the caller is told 503 then, since nothing is guessed in its favour; nothing was charged."""

from app.errors import SluiceError


class Unanswered(SluiceError):
    """No usable answer from the rules. `rule` is the culprit, or the group of rules it is in, where that is known."""

    code = "policy_unanswered"
    status = 503
    exit_code = 6
    hint = "See /readyz and the log line of this decision; `sluice policy eval` shows each rule's part."

    def __init__(self, message: str, rule: str | None = None, *, field: str | None = None) -> None:
        super().__init__(message, field=field)
        self.rule = rule


class PolicyUnavailable(Unanswered):
    """OPA does not answer, and no kept answer may stand in for it."""

    code = "policy_unavailable"
    hint = "See /readyz for OPA; try again when it is back."


class PolicyTimeout(Unanswered):
    """A rule did not end in time while OPA itself was well; it fails closed."""

    code = "policy_timeout"
    hint = "Make the named rule cheaper, or raise opa.timeout_ms."


class PolicyConflict(Unanswered):
    """A rule gave two values where one is expected, or failed while it ran."""

    code = "policy_conflict"
    hint = "Make the conditions of the named rule exclude each other; a test with the same question shows it."


class PolicyUndefined(Unanswered):
    """A rule gave no answer, or no rule limits a dimension that the tenant's quota names; missing is never unlimited."""

    code = "policy_undefined"
    hint = "Let a rule limit the named dimension; `sluice policy eval` shows each rule's part."


class PolicyInvalid(Unanswered):
    """A rule answered something of the wrong shape."""

    code = "policy_invalid"
    hint = "Correct the named field of the named rule, which ?explain tells; docs/how-to/write-a-rule.md has the shapes."
