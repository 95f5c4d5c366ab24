"""The chapter on sensitive models: accesses, obligations, approvals, waivers. Pure."""

from collections.abc import Sequence
from dataclasses import replace

from app.reports.content.csv_files import reasons_text
from app.reports.content.parts import (
    Chapter,
    Operators,
    Section,
    fill,
    named,
    numbers,
    pseudonym,
    said,
    short_id,
    shown,
    stacked,
    table_section,
    together,
)
from app.reports.content.wording import sections as wording
from app.reports.content.wording import terms
from app.reports.document import Column, Paragraph, Text, Words, both
from app.reports.evidence.approvals import APPROVAL_KINDS
from app.reports.evidence.facts import Evidence, Listed, Logged

_ENTRY, _TIME = Column(terms.ENTRY, 1.3, "right", mono=True), Column(terms.TIME, 1.7)
_WHO = (Column(terms.OPERATOR, 1.4), Column(terms.TENANT, 1.3), Column(terms.SUBJECT, 1.95, mono=True))
ACCESSES = (
    _ENTRY,
    _TIME,
    *_WHO,
    Column(terms.MODEL, 2.1),
    Column(terms.PURPOSE, 1.5),
    Column(terms.OUTCOME, 1.95, strong=True),
    Column(terms.APPROVAL, 1.95, mono=True),
    Column(wording.REASONS, 2.2),
)
UNMET = (_ENTRY, _TIME, *_WHO, Column(terms.MODEL, 1.7), Column(wording.REASONS, 2.2), Column(wording.INCIDENT, 1.2, "right"))
APPROVALS = (
    _ENTRY,
    _TIME,
    Column(terms.KIND, 1.3),
    Column(terms.OPERATOR, 1.5),
    Column(terms.TENANT, 1.4),
    Column(terms.MODEL, 1.7),
    Column(terms.PURPOSE, 1.3),
    Column(terms.APPROVAL, 1.6, mono=True),
    Column(wording.EXPIRES, 1.4),
)
STANDING = (
    Column(terms.APPROVAL, 1.95, mono=True),
    Column(terms.STATE, 1.2),
    Column(terms.TENANT, 1.4),
    Column(terms.MODEL, 1.7),
    Column(wording.ASKED_BY, 1.4),
    Column(wording.DECIDED_BY, 1.4),
    Column(wording.BEGINS, 1.4),
    Column(wording.EXPIRES, 1.4),
    Column(terms.ENTRIES, 1.2),
)
WAIVERS = (
    _ENTRY,
    _TIME,
    Column(terms.KIND, 1.5),
    *_WHO,
    Column(terms.MODEL, 1.7),
    Column(terms.OUTCOME, 1.65),
    Column(terms.DETAILS, 2.5),
)


def sensitive(evidence: Evidence, operators: Operators) -> Chapter:
    """Everything of the day about models that the catalogue calls sensitive."""
    tenants = ", ".join(evidence.uncovered)
    warning = [Paragraph(fill(wording.UNCOVERED, tenants=tenants), "warning")] if tenants else []
    sections = [_accesses(evidence, operators), _unmet(evidence, operators)]
    day, older = together(evidence, *APPROVAL_KINDS), Listed(evidence.approvals, len(evidence.approvals))
    sections += [
        _approvals(wording.APPROVALS, day, operators, wording.NO_APPROVALS),
        _approvals(wording.NAMED_APPROVALS, older, operators, wording.NO_NAMED),
        _standing(evidence, operators),
        _waivers(evidence, operators),
    ]
    return Chapter(wording.SENSITIVE, sections, [*warning, Paragraph(terms.SHORTENED, "note")])


def _accesses(evidence: Evidence, operators: Operators) -> Section:
    listed = evidence.of("sensitive.access")
    rows: list[Sequence[Text]] = [
        (
            *_who(entry, operators),
            _model(entry),
            said(entry, "purpose"),
            named(terms.OUTCOMES, entry.outcome),
            short_id(said(entry, "approval_id")),
            _reasons(entry),
        )
        for entry in listed.entries
    ]
    return table_section(wording.ACCESSES, ACCESSES, rows, wording.NO_ACCESSES, listed.total)


def _unmet(evidence: Evidence, operators: Operators) -> Section:
    rows: list[Sequence[Text]] = [
        (
            *_who(each.access, operators),
            _model(each.access),
            _reasons(each.access),
            terms.NO_ENTRY if each.incident is None else str(each.incident),
        )
        for each in evidence.unmet
    ]
    return table_section(wording.UNMET, UNMET, rows, wording.NO_UNMET)


def _approvals(title: Words, listed: Listed, operators: Operators, none: Words) -> Section:
    rows: list[Sequence[Text]] = [
        (
            str(entry.seq),
            stacked(entry.recorded),
            named(terms.KINDS, entry.kind),
            operators.shown(entry.body.get("operator")),
            shown(entry.body.get("tenant")),
            _model(entry),
            said(entry, "purpose"),
            short_id(said(entry, "approval_id")),
            stacked(entry.body.get("expires")),
        )
        for entry in listed.entries
    ]
    return table_section(title, APPROVALS, rows, none, listed.total)


def _standing(evidence: Evidence, operators: Operators) -> Section:
    rows: list[Sequence[Text]] = [
        (
            each.id,
            named(terms.STATES, each.state),
            shown(each.tenant),
            shown(each.model),
            operators.shown(each.asked_by),
            operators.shown(each.decided_by),
            stacked(each.begins),
            stacked(each.revoked or each.expires),
            numbers(each.entries),
        )
        for each in evidence.standing
    ]
    return table_section(wording.STANDING, STANDING, rows, wording.NO_STANDING)


def _waivers(evidence: Evidence, operators: Operators) -> Section:
    listed = together(evidence, "waiver.used", "policy.refusal")
    rows: list[Sequence[Text]] = []
    for entry in listed.entries:
        seq, time, *who = _who(entry, operators)
        why = shown(reasons_text(entry.body.get("waived") or entry.body.get("reasons")))
        rows.append((seq, time, named(terms.KINDS, entry.kind), *who, _model(entry), named(terms.OUTCOMES, entry.outcome), why))
    section = table_section(wording.WAIVERS, WAIVERS, rows, wording.NO_WAIVERS, listed.total)
    return replace(section, blocks=[*section.blocks, Paragraph(wording.OTHER_REFUSALS, "note")])


def _who(entry: Logged, operators: Operators) -> tuple[Text, ...]:
    body = entry.body
    return (
        str(entry.seq),
        stacked(entry.recorded),
        operators.shown(body.get("operator")),
        shown(body.get("tenant")),
        pseudonym(said(entry, "subject")),
    )


def _model(entry: Logged) -> str:
    """The model, and what was to be done with it, the model once: most of the pages of a large night are this table."""
    action = said(entry, "action")
    model = shown(entry.body.get("model"))
    if action == terms.DASH:
        return model
    return f"{model}\n{both(action if not isinstance(action, str) else named(terms.ACTIONS, action))}"


def _reasons(entry: Logged) -> str:
    """Why it ended so, and what the gateway owed or said that it met; codes once, for the same reason as the model."""
    body = entry.body
    found: list[str] = []
    if reasons := reasons_text(body.get("reasons")):
        found.append(reasons)
    for member, words in (("obligations", wording.OWED), ("obligations_met", wording.MET)):
        if codes := body.get(member):
            found.append(f"{both(words)}: {', '.join(map(shown, codes)) if isinstance(codes, list) else shown(codes)}")
    return "\n".join(found) or terms.DASH
