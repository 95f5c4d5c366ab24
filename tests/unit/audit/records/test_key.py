"""Entries of keys."""

from datetime import UTC, datetime

import orjson

from app.audit.records.key import key_created, key_revoked, signer_created, signer_facts, signer_rotated

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
    old, new = (signer_facts(fingerprint=hexes, subject="CN=s", not_before=AT, not_after=AT) for hexes in ("aa", "bb"))
    first = orjson.loads(signer_created(recorded=AT, operator="cli:root", signer=old).body)
    body = orjson.loads(signer_rotated(recorded=AT, operator="cli:root", before=old, after=new).body)

    assert ("key.created", "aa", "log", old) == tuple(first[name] for name in ("kind", "key", "use", "after"))
    assert ("key.rotated", "bb", "log", old, new) == tuple(body[name] for name in ("kind", "key", "use", "before", "after"))
    assert new["not_after"] == "2026-01-02T03:04:05.000006Z"
