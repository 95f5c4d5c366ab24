"""The report for one person as a document. Pure: equal answers are equal documents."""

from collections.abc import Iterator, Sequence
from typing import Any

import orjson

from app.instants import rfc3339
from app.reports.document import Block, Document, Facts, Heading, Lines, Paragraph, Table, Text, Words
from app.reports.subjects import labels, wording
from app.reports.subjects.answer import Answer, Summary
from app.reports.subjects.view import Shown

_ELSEWHERE = frozenset({"action", "after", "before", "diff", "model", "purpose", "reasons", "subject", "waived"})
"""Members that have a place of their own, whose id is on the cover, or that are whole in JSON and CSV alone: states of a quota."""
_SECONDS = len("2026-01-31T10:00:00")


def row(entry: Shown) -> tuple[Text, ...]:
    """The line of one entry, its time to the second; JSON has all of it."""
    said = {**entry.members, **entry.texts.opened}
    what = [str(said[name]) for name in ("model", "action", "purpose") if said.get(name)]
    masked = entry.tenant is not None and entry.tenant.startswith("tenant #")
    return (
        str(entry.seq),
        entry.recorded[:_SECONDS].replace("T", "\n"),
        f"{entry.kind}\n{entry.outcome}",
        "\n".join(what),
        "; ".join(_details(entry)),
        f"{entry.by}\n{entry.tenant}" if masked else entry.by,
        f"{entry.kept_until}\n{entry.retention}",
    )


def _details(entry: Shown) -> Iterator[str]:
    for name, prefix in (("reasons", ""), ("waived", "waived ")):
        for reason in entry.members.get(name) or ():
            yield f"{prefix}{reason.get('code')} ({reason.get('rule') or 'sluice'})"
    for name, value in {**entry.members, **entry.texts.opened}.items():
        if name not in _ELSEWHERE:
            yield f"{name} {_plain(value)}"
    for state in ("erased", "unreadable", "withheld"):
        if members := getattr(entry.texts, state):
            yield f"{state}: {', '.join(members)}"


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()


def document(answer: Answer, summary: Summary, rows: Sequence[Sequence[Text]], *, root: str | None) -> Document:
    """The report. `rows`: the lines of the first entries, or of all; `root`: SM3 of the root certificate to check it with, if it is signed."""
    return Document(
        title=wording.TITLE,
        subject=f"GDPR Art. 15, 20; PIPL Art. 45; {answer.id}",
        footer=answer.id,
        cover=list(_cover(answer, summary, root)),
        blocks=[*_told(answer, summary), *_entries(summary, rows), *_outside(answer, summary), *_proof(answer)],
        made=rfc3339(answer.made),
        author=answer.by.organization or "Sluice",
    )


def _cover(answer: Answer, summary: Summary, root: str | None) -> Iterator[Block]:
    person, request = answer.person, answer.request
    asked = f"{answer.legal_basis}" if request is None else f"{request.article}, {request.asked}, {request.id}"
    pairs: list[tuple[Text, Text]] = [
        (labels.ABOUT, wording.ROLES[person.role]),
        (labels.ID, person.name),
    ]
    if person.role == "subject":
        pairs.append((labels.TENANT, person.tenant or ""))
    pairs += [
        (labels.PSEUDONYM, answer.pseudonym),
        (labels.REQUEST, asked),
        (labels.MADE, rfc3339(answer.made)),
        (labels.RESPONSIBLE, answer.by.organization or labels.NOT_NAMED),
        (labels.SYSTEM, answer.by.system or labels.NOT_NAMED),
        (labels.ENTRIES, str(summary.entries)),
        (labels.CHECKPOINT, f"{answer.closing.checkpoint.tree_head.origin}, {answer.closing.checkpoint.size}"),
    ]
    yield Facts(pairs)
    if not summary.entries:
        yield Paragraph(wording.NOTHING)
    if root is None:
        yield Paragraph(wording.UNSIGNED, "warning")
        return
    yield Paragraph(wording.SIGNED, "note")
    yield Paragraph(wording.CHECK, "note")
    pdf, pem = f"{answer.name}.pdf", f"{answer.name}-root.pem"
    yield Lines([f"sluice report verify {pdf} --root {pem}", f"sluice-verify --report {pdf} --root {pem}", f"sh verify.sh {pdf} {pem}"])
    yield Facts([(labels.ROOT, root)])


def _told(answer: Answer, summary: Summary) -> Iterator[Block]:
    yield Heading(labels.TOLD)
    yield Facts([(label, said) for _, label, said in wording.POINTS])
    yield Paragraph(wording.SCOPE[answer.person.role], "note")
    yield Heading(labels.SUMMARY, 2)
    yield Table(labels.SUMMARY_COLUMNS, [(kind, outcome, str(count)) for (kind, outcome), count in sorted(summary.kinds.items())])


def _entries(summary: Summary, rows: Sequence[Sequence[Text]]) -> Iterator[Block]:
    yield Heading(labels.ALL_ENTRIES)
    if summary.entries:
        yield Table(labels.ENTRY_COLUMNS, rows, total=summary.entries if summary.entries > len(rows) else None)
    else:
        yield Paragraph(wording.NOTHING)


def _outside(answer: Answer, summary: Summary) -> Iterator[Block]:
    yield Heading(labels.OUTSIDE, 2)
    yield Paragraph(key_words(answer, summary))
    yield Facts([(table, str(count)) for table, count in answer.held.items()])
    yield Paragraph(wording.REGISTRY, "note")
    yield Paragraph(wording.LEASES)


def key_words(answer: Answer, summary: Summary) -> Words:
    """How the person's key stands, in words."""
    words = wording.KEYS[answer.key_state(summary)]
    created = rfc3339(answer.key.created) if answer.key else ""
    said = [text.format(created=created, erased=summary.erased_at) for text in (words.zh, words.en)]
    return Words(*said)


def _proof(answer: Answer) -> Iterator[Block]:
    yield Heading(labels.PROOF, 2)
    yield Paragraph(wording.PROOF)
    yield Lines(answer.closing.checkpoint.note.splitlines())
