"""OpenAPI for the hot routes, which bypass the framework: the same document as all others, from the same shapes."""

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel

from app.api.edge import PUBLIC
from app.decision.request import MAX_BATCH, DecideRequest, RenewRequest, SettleRequest

PROBLEM = {
    "description": "A problem with the call itself",
    "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
}
PROBLEM_SHAPE = {
    "type": "object",
    "required": ["type", "title", "status", "detail", "code", "hint"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "code": {"type": "string"},
        "hint": {"type": "string"},
        "field": {"type": "string"},
    },
}
_TEXT_OR_NULL = {"type": ["string", "null"]}
_COUNT_OR_NULL = {"type": ["integer", "null"]}
DECISION_SHAPE = {
    "type": "object",
    "required": ["decision_id", "allow", "status", "reasons", "retry_after_ms", "replayed", "limits", "headers", "policy", "telemetry"],
    "properties": {
        "decision_id": {"type": "string", "description": "Also the id of the lease."},
        "allow": {"type": "boolean"},
        "status": {"type": "integer", "description": "What the gateway answers its client: 200, 403, 429 or 503."},
        "reasons": {"type": "array", "items": {"type": "object", "required": ["code", "message"]}},
        "retry_after_ms": _COUNT_OR_NULL,
        "replayed": {"type": "boolean", "description": "True: do not start a second generation."},
        "lease": {"type": ["object", "null"]},
        "limits": {"type": "object", "description": "The tightest bucket per dimension."},
        "obligations": {"type": "array", "items": {"type": "object", "required": ["code"]}},
        "node": _TEXT_OR_NULL,
        "headers": {"type": "object", "additionalProperties": {"type": "string"}},
        "policy": {"type": "object", "properties": {"revision": _TEXT_OR_NULL, "quota_version": _COUNT_OR_NULL}},
        "telemetry": {
            "type": "object",
            "properties": {
                "generation": _COUNT_OR_NULL,
                "age_ms": _COUNT_OR_NULL,
                "degraded": {"type": "boolean"},
                "probe": {"type": "boolean", "description": "True: sent to see whether the node lives; only there where it is."},
            },
        },
    },
}
SETTLEMENT_SHAPE = {
    "type": "object",
    "properties": {
        "lease_id": {"type": "string"},
        "outcome": {"type": "string"},
        "tokens_charged": {"type": "number"},
        "tokens_refunded": {"type": "number"},
        "freed": {"type": "boolean"},
        "repeated": {"type": "boolean"},
        "flags": {"type": "array", "items": {"type": "string"}, "description": "What of the report could not be taken as it stands."},
        "obligations_owed": {
            "type": "array",
            "items": {"type": "string"},
            "description": "Codes that one `obligations_met` has to name together: until then the access is unconfirmed.",
        },
    },
}
READ_PROBLEMS: tuple[str, ...] = ("400", "401", "403", "404", "503")
"""What any call but a public one may be answered instead."""
WRITE_PROBLEMS: tuple[str, ...] = (*READ_PROBLEMS, "408", "409", "413", "415")
"""The same for calls with a body."""
VERSION_PROBLEMS = ("412", "428")
"""Beside these, for calls that name a version in If-Match."""
LEASE_ID = {"name": "decision_id", "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}


def install_openapi(app: FastAPI) -> None:
    """Make `app.openapi()` describe the hot routes beside its own, behind the bearer credential."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            schema = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
            components = schema.setdefault("components", {})
            shapes = components.setdefault("schemas", {})
            for shape in (DecideRequest, SettleRequest, RenewRequest):
                document = shape.model_json_schema(ref_template="#/components/schemas/{model}")
                shapes.update(document.pop("$defs", {}))
                shapes[shape.__name__] = document
            shapes |= {"Problem": PROBLEM_SHAPE, "Decision": DECISION_SHAPE, "Settlement": SETTLEMENT_SHAPE}
            components["securitySchemes"] = {"bearer": {"type": "http", "scheme": "bearer"}}
            schema["security"] = [{"bearer": []}]
            shapes.pop("HTTPValidationError", None)
            shapes.pop("ValidationError", None)
            schema["paths"] |= _hot_paths()
            for path, operations in schema["paths"].items():
                for method, operation in operations.items():
                    _tell_problems(path, method, operation)
            app.openapi_schema = schema
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]  # the framework's own way to extend the document


def _tell_problems(path: str, method: str, operation: dict[str, Any]) -> None:
    """Say who may call and what else may be answered; what the framework would say of its own validation is a 400 here."""
    operation["responses"].pop("422", None)
    if path.encode() in PUBLIC:
        operation["security"] = []
        return
    codes = READ_PROBLEMS if method == "get" else WRITE_PROBLEMS
    if any(parameter["name"] == "if-match" for parameter in operation.get("parameters", ())):
        codes += VERSION_PROBLEMS
    operation["responses"] |= dict.fromkeys(codes, PROBLEM)


def _hot_paths() -> dict[str, Any]:
    explain = {"name": "explain", "in": "query", "schema": {"type": "string"}, "allowEmptyValue": True}
    batch = {
        "type": "object",
        "required": ["requests"],
        "properties": {"requests": {"type": "array", "minItems": 1, "maxItems": MAX_BATCH, "items": _ref(DecideRequest)}},
    }
    decisions = {"type": "object", "properties": {"decisions": {"type": "array", "items": {"$ref": "#/components/schemas/Decision"}}}}
    decision = {"$ref": "#/components/schemas/Decision"}
    settlement = {"$ref": "#/components/schemas/Settlement"}
    return {
        "/decide": _post("May this request start now, and on what terms?", _ref(DecideRequest), decision, [explain]),
        "/decide/batch": _post("The same for many requests, in order.", batch, decisions),
        "/leases/{decision_id}/settle": _post("What the call really took.", _ref(SettleRequest), settlement, [LEASE_ID]),
        "/leases/{decision_id}/renew": _post("A longer life for a running call.", _ref(RenewRequest), {"type": "object"}, [LEASE_ID]),
        "/leases/{decision_id}/cancel": _post("The call never started: give everything back.", None, {"type": "object"}, [LEASE_ID]),
    }


def _ref(shape: type[BaseModel]) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{shape.__name__}"}


def _post(
    summary: str, body: dict[str, Any] | None, answer: dict[str, Any], parameters: list[dict[str, Any]] | None = None
) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "tags": ["decide"],
        "summary": summary,
        "parameters": parameters or [],
        "responses": {"200": {"description": "Done", "content": {"application/json": {"schema": answer}}}},
    }
    if body is not None:
        operation["requestBody"] = {"required": True, "content": {"application/json": {"schema": body}}}
    return {"post": operation}
