"""The registers of what people asked for and of breaches: how each stands, derived from its entries alone. Pure.

Whoever wants to know how it stood at the end of a day gives the entries that were recorded until then, in the order of the log.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from app.reports.evidence.facts import Breach, Logged, Status, SubjectRequest

REQUEST_KINDS = ("subject.request", "subject.access", "subject.erasure", "subject.answer")
BREACH_KINDS = ("breach.known", "breach.notified")

ANSWERED_BY = {
    "subject.access": {"GDPR Art. 15", "GDPR Art. 20"},
    "subject.erasure": {"GDPR Art. 17"},
}
"""Which requests a deed of Sluice's own answers, by its kind; a `subject.answer` answers any."""
_STATUS: dict[str, Status] = {"done": "done", "refused": "refused"}


def subject_requests(entries: Iterable[Logged]) -> list[SubjectRequest]:
    """The requests among `entries`, in the order in which they were opened; other kinds are passed over.

    The first answer counts, and one that names another person, or a request that nobody opened, is none.
    """
    requests: dict[str, SubjectRequest] = {}
    for entry in entries:
        if entry.kind not in REQUEST_KINDS or (name := entry.body.get("request")) is None:
            continue
        known = requests.get(name)
        if entry.kind == "subject.request":
            requests.setdefault(name, _opened(entry))
        elif known is not None and known.subject == entry.body["subject"]:
            requests[name] = _answered(known, entry)
    return list(requests.values())


def breaches(entries: Iterable[Logged]) -> list[Breach]:
    """The breaches among `entries`, in the order in which they were written down. Of several times that somebody was told the first counts."""
    found: dict[str, Breach] = {}
    for entry in entries:
        if entry.kind == "breach.known":
            found.setdefault(entry.body["breach"], _known(entry))
        elif entry.kind == "breach.notified" and (known := found.get(entry.body["breach"])) is not None:
            told = {entry.body["whom"]: entry.body["at"]} | dict(known.notified)
            found[known.id] = replace(known, notified=told, entries=(*known.entries, entry.seq))
    return list(found.values())


def open_requests(requests: Iterable[SubjectRequest]) -> Iterator[SubjectRequest]:
    """Those that nobody has answered."""
    return (request for request in requests if request.status == "open")


def _opened(entry: Logged) -> SubjectRequest:
    body = entry.body
    return SubjectRequest(
        id=body["request"],
        tenant=body["tenant"],
        subject=body["subject"],
        article=body["article"],
        asked=body["from"],
        due=body["expires"],
        status="open",
        entries=(entry.seq,),
    )


def _answered(known: SubjectRequest, entry: Logged) -> SubjectRequest:
    answers = entry.kind == "subject.answer" or known.article in ANSWERED_BY[entry.kind]
    numbered = replace(known, entries=(*known.entries, entry.seq))
    if known.status != "open" or not answers:
        return numbered
    ground = entry.body.get("legal_basis") if entry.outcome == "refused" else None
    return replace(numbered, status=_STATUS[entry.outcome], answered=entry.recorded, ground=ground)


def _known(entry: Logged) -> Breach:
    body = entry.body
    return Breach(
        id=body["breach"],
        tenant=body["tenant"],
        known=body["from"],
        due=body["expires"],
        people=body.get("count"),
        entries=(entry.seq,),
    )
