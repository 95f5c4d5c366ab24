"""Entries of keys."""

from datetime import UTC, datetime

import orjson

from app.audit.records.key import key_created, key_revoked, signer_created, signer_rotated
from app.signing.certificates import Certificate, make_root
from app.signing.sm2 import PrivateKey

AT = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)
ID = "01890000-0000-7000-8000-000000000001"


def test_entries_of_keys_hold_no_key():
    """Creation and revocation name the key by id and name, with roles and tenants, and nothing secret."""
    made = key_created(recorded=AT, operator="cli:root", key_id=ID, name="gw1", roles=["gateway"], tenants=["b", "a"], expires=None)
    revoked = key_revoked(recorded=AT, operator="cli:root", key_id=ID, name="gw1")

    assert orjson.loads(made.body)["after"] == {"name": "gw1", "roles": ["gateway"], "tenants": ["a", "b"], "expires": None}
    assert (revoked.kind, *(orjson.loads(revoked.body)[name] for name in ("key", "use"))) == ("key.revoked", ID, "api")


def test_a_rotation_names_both_signers():
    """A new signing key of the log is named by its certificate, beside the one whose place it takes."""
    old, new = (make_root(PrivateKey.generate(), AT) for _ in range(2))
    first = orjson.loads(signer_created(recorded=AT, operator="cli:root", signer=old).body)
    body = orjson.loads(signer_rotated(recorded=AT, operator="cli:root", before=old, after=new).body)

    assert ("key.created", named(old), "log", facts(old)) == tuple(first[name] for name in ("kind", "key", "use", "after"))
    after = ("key.rotated", named(new), "log", facts(old), facts(new))
    assert after == tuple(body[name] for name in ("kind", "key", "use", "before", "after"))


def test_a_signer_of_reports_is_not_one_of_the_log():
    """The same entries tell of the keys of reports, and say which use they have."""
    old, new = (make_root(PrivateKey.generate(), AT) for _ in range(2))
    entries = (
        signer_created(recorded=AT, operator="sluice", signer=old, use="report"),
        signer_rotated(recorded=AT, operator="cli:root", before=old, after=new, use="report"),
    )

    assert [orjson.loads(entry.body)["use"] for entry in entries] == ["report", "report"]


def named(certificate: Certificate) -> str:
    return certificate.fingerprint.hex()


def facts(certificate: Certificate) -> dict[str, str]:
    times = {"not_before": "2026-01-02T02:04:05.000000Z", "not_after": "2045-12-28T03:04:05.000000Z"}
    return {"fingerprint": named(certificate), "subject": certificate.subject} | times
