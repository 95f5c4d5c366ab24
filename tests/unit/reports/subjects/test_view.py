"""What a person is shown of an entry."""

from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.audit.format.leaf import Leaf, leaf_hash, sm3
from app.audit.people.subject_keys import KeptKey, SubjectKey
from app.audit.reading.entries import Logged
from app.audit.reading.proven import Proven
from app.audit.records.kinds import KINDS, MEMBERS
from app.reports.subjects.person import Person
from app.reports.subjects.view import Masks, Shown, Texts, shown, texts_of
from tests.fixtures.entries import AT

ID = UUID("01890000-0000-7000-8000-000000000001")
SUBJECT, OPERATOR, TENANT = Person("subject", "acme", "bea"), Person("operator", None, "anna"), Person("tenant", "acme", "acme")
SECRET, MINE = "bea@example.org", f"p1:{'ab' * 32}"
OWN, OTHER = (SubjectKey(UUID(int=number), bytes([number] * 32)) for number in (1, 2))
KEPT = KeptKey(AT, OWN)


def proven(**members: Any) -> Proven:
    body = {"kind": "sensitive.access", "operator": "gw-one", "tenant": "acme", "outcome": "allowed", **members}
    leaf = Leaf(5, str(ID), "2026-01-31T10:00:00.000000Z", "d730", sm3(b""))
    return Proven(Logged(leaf, leaf_hash(leaf.text), b""), body, [bytes(32)])


def seen(person: Person, **members: Any) -> Shown:
    return shown(proven(**members), person, Masks(person), Texts())


def texts(person: Person, key: KeptKey | None, others: frozenset[str] = frozenset(), about: str | None = MINE, **sealed: str) -> Texts:
    return texts_of(proven(sealed=sealed, subject=about), person, MINE, key, others)


def sealed_by(key: SubjectKey, member: str, text: str) -> str:
    """As `seal` does for the entry of these tests."""
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    return key._seal(AESGCM(key.secret), ID, member, text)


def test_an_entry_is_kept_for_the_days_of_its_class():
    """730 days after 31 January 2026 is 31 January 2028, and the leaf is what was hashed."""
    one = seen(SUBJECT)

    assert (one.seq, one.kept_until, one.retention) == (5, "2028-01-31", "d730")
    assert one.leaf.startswith('{"body":"')
    assert one.path == ("00" * 32,)


def test_operators_are_numbers():
    """Who acted is masked by a number that stays, Sluice itself is named, and an operator sees that it was they."""
    masks = Masks(SUBJECT)

    assert [masks.operator(name) for name in ("anna", "bob", "anna", "sluice")] == ["operator #1", "operator #2", "operator #1", "sluice"]
    assert [Masks(OPERATOR).operator(name) for name in ("anna", "bob")] == ["yourself", "operator #1"]


def test_tenants_are_numbers_for_operators_alone():
    """A tenant may be a person; a subject knows theirs."""
    assert (seen(SUBJECT).tenant, seen(TENANT).tenant, seen(OPERATOR).tenant) == ("acme", "acme", "tenant #1")


@given(st.sampled_from([SUBJECT, OPERATOR, TENANT]), st.dictionaries(st.sampled_from(sorted(MEMBERS)), st.just(SECRET), min_size=1))
def test_pseudonyms_addresses_and_queries_are_never_shown(person: Person, members: dict[str, str]):
    """Whatever an entry has: members that tell of somebody else stay away, from an operator all that tells of subjects."""
    never = {"subject", "address", "query", "files", "file", "key", "base64"}
    of_subjects = {
        "after",
        "before",
        "diff",
        "decision_id",
        "approval_id",
        "request",
        "purpose",
        "reasons",
        "obligations",
        "proposal",
        "why",
    }
    hidden = never | (of_subjects if person is OPERATOR else set())
    entry = shown(proven(**members), person, Masks(person), Texts())

    assert not hidden & entry.members.keys()


def test_every_member_that_is_shown_exists():
    """No name of a member is misspelled: each is one of the table of kinds."""
    from app.reports.subjects.view import MEMBERS as SHOWN

    assert not set().union(*SHOWN.values()) - MEMBERS.keys()
    assert all(seen(SUBJECT, kind=kind).document["meaning"] == KINDS[kind].says for kind in KINDS)


def test_an_operator_sees_their_own_key_and_not_for_whom_it_speaks():
    """Roles and expiry of the key that they present; nothing of anybody else's."""
    state = {"name": "anna", "roles": ["auditor"], "tenants": [SECRET], "expires": None}

    assert seen(OPERATOR, kind="key.created", use="api", key="k", after=state).members["after"] == {"expires": None, "roles": ["auditor"]}
    assert "after" not in seen(OPERATOR, kind="key.created", use="api", key="k", after=state | {"name": "bob"}).members


def test_own_texts_are_opened():
    """What is sealed under the person's key stands in clear, and nothing else does."""
    mine, theirs = sealed_by(OWN, "purpose", "credit"), sealed_by(OTHER, "address", "192.0.2.7")

    assert texts(SUBJECT, KEPT, frozenset([theirs]), purpose=mine, address=theirs) == Texts({"purpose": "credit"}, withheld=("address",))


@pytest.mark.parametrize("person", [SUBJECT, OPERATOR, TENANT])
@pytest.mark.parametrize("member", ["reason", "problem", "a member of tomorrow"])
@pytest.mark.parametrize("key", [KEPT, KeptKey(AT, None), None])
def test_what_others_wrote_is_withheld(person: Person, member: str, key: KeptKey | None):
    """A reason or a note may name third persons, even under the person's own key: a person has to judge."""
    written = {member: sealed_by(OWN, member, "refused: bob complained about her")}

    assert texts(person, key, **written) == Texts(withheld=(member,))


@pytest.mark.parametrize("person", [SUBJECT, TENANT, OPERATOR])
def test_what_is_gone_is_erased_of_the_person_it_was_about_alone(person: Person):
    """A destroyed key may have been anybody's where the entry is not about the person: that is never called their erasure."""
    gone = sealed_by(OTHER, "address", "192.0.2.7")

    assert texts(person, KEPT, about=None, address=gone) == Texts(unreadable=("address",))
    assert texts(person, KEPT, about=MINE, address=gone) == Texts(erased=("address",))


@pytest.mark.parametrize(
    ("key", "state"), [(None, "erased"), (KeptKey(AT, OTHER), "erased"), (KeptKey(AT, None), "unreadable"), (KEPT, "opened")]
)
def test_destroyed_is_not_damaged(key: KeptKey | None, state: str):
    """A key that is gone, or came after, leaves what was sealed erased; one that does not open leaves it unreadable."""
    found = texts(SUBJECT, key, purpose=sealed_by(OWN, "purpose", "credit"))

    assert "purpose" in getattr(found, state)


def test_moved_texts_are_unreadable():
    """A text that was sealed for another member, or never, is told apart from an erased one."""
    found = texts(SUBJECT, KEPT, purpose=sealed_by(OWN, "reason", "x"), action="never sealed")

    assert (found.opened, found.unreadable) == ({}, ("purpose", "action"))
