"""The one base of every error Sluice raises on purpose; docs/reference/errors.md is generated from its subclasses.

A refused request is not an error but a `Decision`. An error is a caller's mistake or a fault of ours or of a
dependency: it says what is wrong (`message`), what to do (`hint`), and how HTTP and the CLI answer (`status`, `exit_code`).
"""

from typing import ClassVar


class SluiceError(Exception):
    """Base of all Sluice errors. `code` is stable and machine-readable; the first docstring line documents it."""

    code: ClassVar[str] = "internal"
    status: ClassVar[int] = 503
    exit_code: ClassVar[int] = 1
    hint: ClassVar[str] = "Report this with the decision id or the log line."

    def __init__(self, message: str, *, hint: str | None = None, field: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.advice = hint or self.hint
        self.field = field


class BadRequest(SluiceError):
    """The request body or a parameter is not what the contract asks for; nothing was charged or written."""

    code = "bad_request"
    status = 400
    exit_code = 2
    hint = "Correct the named field; docs/reference/http.md has the shapes."


class DuplicateKey(BadRequest):
    """A JSON object names the same key twice, so two readers could see two different values."""

    code = "duplicate_key"
    hint = "Send each key once."


class BodyTooLarge(BadRequest):
    """The body is over the limit; reading stopped there."""

    code = "body_too_large"
    status = 413
    hint = "Send token counts, not prompts; a decision needs a few hundred bytes."


class Unauthorized(SluiceError):
    """The credential is missing, unknown, revoked or expired."""

    code = "unauthorized"
    status = 401
    exit_code = 3
    hint = "Send Authorization: Bearer KEY; `sluice key create` makes one. /openapi.json has all routes and needs none."


class Forbidden(SluiceError):
    """The credential is good but not for this: wrong role, or a tenant it may not speak for."""

    code = "forbidden"
    status = 403
    exit_code = 3
    hint = "Use a key whose roles and tenants cover this call; `sluice key list` shows them."


class NotFound(SluiceError):
    """What the path names does not exist."""

    code = "not_found"
    status = 404
    exit_code = 2
    hint = "Check the spelling; ids in paths are percent-encoded."


class Conflict(SluiceError):
    """The call contradicts something already recorded: another body for the same id, a second settle, an existing name."""

    code = "conflict"
    status = 409
    exit_code = 2
    hint = "Read the current state, then send the call again under a new id."


class PreconditionFailed(SluiceError):
    """`If-Match` names a version that is no longer the newest; somebody changed it in between."""

    code = "precondition_failed"
    status = 412
    exit_code = 2
    hint = "GET the resource, apply the change to its newest version, and send that version in If-Match."


class PreconditionRequired(SluiceError):
    """A change of something that exists came without `If-Match`, so it could overwrite another's change unseen."""

    code = "precondition_required"
    status = 428
    exit_code = 2
    hint = 'Send If-Match with the version that GET answered as ETag, for example If-Match: "3".'


class DependencyDown(SluiceError):
    """A dependency that this call needs does not answer; nothing was changed."""

    code = "dependency_down"
    status = 503
    exit_code = 6
    hint = "See /readyz for what is down; try again when it is back."


class ConfigError(SluiceError):
    """A setting or a configuration file is wrong; the last good one stays in force where there was one."""

    code = "config_invalid"
    status = 503
    exit_code = 2
    hint = "Correct the named setting; docs/reference/settings.md lists them all."


class PolicyRefused(SluiceError):
    """A policy bundle did not pass its checks and was not put in force; the last good one stays."""

    code = "policy_refused"
    status = 422
    exit_code = 5
    hint = "Correct the named file and line; docs/how-to/write-a-rule.md says what is refused, and why."
