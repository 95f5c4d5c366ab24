"""What both reports say of a night: all of it, the same each time, zeros where there was nothing, and data never as markup."""

from collections.abc import Callable
from dataclasses import replace
from datetime import date, timedelta

import pytest

from app.reports.content.texts import template_texts
from app.reports.document import Chart, Document, Facts, Heading, Lines, Paragraph, Table
from app.reports.evidence.facts import Evidence, Listed
from app.reports.layout.font import Font, check_template
from app.reports.nights.night import Night
from tests.fixtures.night import ANNA, NOON, NightLog, allowed, as_logged, eventful, purge, quota, refused, summary
from tests.fixtures.report_content import (
    IMPRINT,
    all_blocks,
    cells,
    clauses,
    english,
    gdpr_of,
    mlps_of,
    register,
    table_under,
    texts,
    under,
    whole_text,
)

BOTH = pytest.mark.parametrize("report", [mlps_of, gdpr_of])
Report = Callable[..., Document]
EVENTFUL = NightLog.of(*eventful()).evidence()
EMPTY = NightLog.of(quota("acme", NOON - timedelta(days=9))).evidence()


def facts_of(document: Document) -> dict[str, str]:
    """The cover's, in English."""
    return {english(label): english(value) for block in document.cover if isinstance(block, Facts) for label, value in block.pairs}


def counted(document: Document) -> dict[str, tuple[int, int]]:
    """How many rows the cover says each table has."""
    (table,) = [block for block in document.cover if isinstance(block, Table)]
    return {str(row[0]): (int(english(row[1])), int(english(row[2]))) for row in table.rows}


@BOTH
def test_same_evidence_is_the_same_document(report: Report) -> None:
    """Nothing but the evidence and the imprint goes into a report."""
    again = replace(NightLog.of(*eventful()).evidence(), integrity=EVENTFUL.integrity)  # SM2 signatures are random
    assert report(EVENTFUL) == report(again)


@BOTH
@pytest.mark.parametrize("evidence", [EVENTFUL, EMPTY], ids=["eventful", "empty"])
def test_every_character_is_of_the_templates_or_of_the_data(report: Report, evidence: Evidence) -> None:
    """The list of template texts, which the font is checked with, has every character that a night in ASCII prints."""
    listed = {char for text in template_texts(clauses(), register()) for char in text}
    printed = {char for char in whole_text(report(evidence)) if not char.isascii()}
    assert printed - listed == set()


def test_font_of_set_up_has_every_character(report_font: Font) -> None:
    """Nothing of the templates, the clauses and the register that come with Sluice prints as [U+XXXX]."""
    check_template(report_font, template_texts(clauses(), register()))
    for evidence in (EVENTFUL, EMPTY):
        assert report_font.lacks(whole_text(mlps_of(evidence)) + whole_text(gdpr_of(evidence))) == ""


@BOTH
def test_no_placeholder_stays(report: Report) -> None:
    """Every `{name}` of a template got its value."""
    for evidence in (EVENTFUL, EMPTY):
        braces = [text for text in texts(all_blocks(report(evidence))) if "{" in text and '"' not in text]
        assert braces == []


@BOTH
@pytest.mark.parametrize("evidence", [EVENTFUL, EMPTY], ids=["eventful", "empty"])
def test_cover_counts_the_rows_inside(report: Report, evidence: Evidence) -> None:
    """Row 61: for each table that the cover names, as many rows stand inside."""
    document = report(evidence)
    inside: dict[str, int] = {}
    title = ""
    for block in document.blocks:
        if isinstance(block, Heading) and block.level < 3:
            title = english(block.text)
        elif isinstance(block, Table):
            inside[title] = len(block.rows)
    counts = counted(document)
    named = {next((name for name in counts if name.endswith(title)), title): rows for title, rows in inside.items()}
    found = {name: named.get(name, 0) for name in counts if "Register of breaches" not in name and "Activities as" not in name}
    assert found == {name: counts[name][0] for name in found}


def test_table_says_how_many_there_are_in_all() -> None:
    """Where more entries are counted than are listed, table and cover say both numbers."""
    few = replace(EVENTFUL, listed={**EVENTFUL.listed, "log.read": Listed(EVENTFUL.of("log.read").entries, 20_500)})
    document = mlps_of(few)
    assert table_under(document, "Readings of the log and of reports").total == 20_500
    assert counted(document)["日志与报告的读取 Readings of the log and of reports"] == (2, 20_500)


@BOTH
def test_empty_night_says_that_there_was_nothing(report: Report) -> None:
    """Row 67: period, checkpoint and count 0 stand there, with a sentence, and no table of the log has a row."""
    document = report(EMPTY)
    facts = facts_of(document)
    assert facts["entries / numbers exported"] == "0 / [0, 1)"
    assert facts["decisions: allowed / not allowed"] == "0 / 0"
    assert facts["sensitive accesses / refused"] == "0 / 0"
    assert facts["day, period (UTC, end not included)"] == (
        "2026-11-29 Asia/Shanghai\n[2026-11-28T16:00:00.000000Z, 2026-11-29T16:00:00.000000Z)"
    )
    assert facts["log: verdict; checkpoint"] == f"whole\n1, {EMPTY.integrity.report.root}"
    assert "The log has no entry of this day." in "\n".join(texts(document.cover))
    of_the_register = (
        "Clause by clause",
        "Activities as a controller (Art. 30(1))",
        "Register of impact assessments (PIPL Art. 55 and 56)",
    )
    assert {rows for name, rows in counted(document).items() if not name.endswith(of_the_register)} == {(0, 0)}


def test_empty_night_is_not_met_by_having_nothing() -> None:
    """A day without any record shows no coverage: that is for a person."""
    rows = cells(mlps_of(EMPTY), "Clause by clause")
    verdicts = {row[0].split("\n")[0]: row[3] for row in rows}
    assert verdicts["8.1.4.3 a)"] == "for a person to judge"
    assert verdicts["8.1.4.3 b)"] == "for a person to judge"
    assert verdicts["8.1.4.11 b)"] == "not applicable"


HOSTILE = ['<img src="http://127.0.0.1:9/x"/>', "A & B", "0.1 <A <0.9", "<b>x", "{tenant}", "{0.__class__}", "%s &amp; &#x41;"]


@pytest.mark.parametrize("name", HOSTILE)
def test_names_are_printed_as_they_are(name: str) -> None:
    """Row 62: a tenant, operator or purpose that looks like markup or a template stands there, letter for letter."""
    log = NightLog.of(quota(name), allowed(1, tenant=name, operator=name, purpose=name), summary(3, tenant=name, model=name))
    document = mlps_of(log.evidence(), replace(IMPRINT, organization=name, made_by=name))
    assert [row[4] for row in cells(document, "Changes of quotas")] == [name]
    (row,) = cells(document, "Accesses")
    assert (row[2], row[3], row[6]) == (name, name, name)
    assert [row[:2] for row in cells(document, "By tenant and model")] == [[name, name]]
    assert facts_of(document)["made at / by"].endswith(f" / {name}")
    (row, *_) = cells(gdpr_of(log.evidence()), "By person")
    assert (row[1], row[3]) == (name, name)


def test_operators_are_named_for_mlps_and_masked_for_people() -> None:
    """Employees have names in the one report and numbers in the other (CJEU C-579/21); no name is anywhere in the latter."""
    names = {"gateway", "olivia", "dora", "auditor", "cli:olga", "cli:root", "anna"}
    log = NightLog.of(*(entry for entry in eventful()))
    masked = "\n".join(texts(all_blocks(gdpr_of(log.evidence()))))
    cut = masked.replace("by way of the gateway", "").replace('"roles":["gateway"]', "")
    assert {name for name in names if name in cut} == set()
    assert "operator #1" in masked
    named = whole_text(mlps_of(log.evidence()))
    assert {name for name in names if name in named} == names


def test_cover_counts_accesses_once() -> None:
    """An access that is confirmed later is one access: of the eventful night's six entries five began one, and one was refused."""
    facts = facts_of(mlps_of(EVENTFUL))
    assert facts["sensitive accesses / refused"] == "5 / 1"
    assert facts["decisions: allowed / not allowed"] == "92 / 27"
    assert facts["entries / numbers exported"] == "30 / [0, 30)"
    assert facts["clauses"] == "met 2 · partly met 2 · not met 0 · not applicable 0 · for a person to judge 9"


def test_quota_change_has_before_and_after() -> None:
    """One row an entry, one line a path."""
    (first, second) = cells(mlps_of(EVENTFUL), "Changes of quotas")
    assert first == ["3", "2026-11-29\n04:00:03Z", "quota in force", "olivia", "acme", "1", "qps: — → 10"]
    assert second[0] == "4"


def test_accesses_say_what_was_owed_and_met() -> None:
    """Outcome, approval, reasons, obligations; a sealed purpose is said to be sealed."""
    rows = {row[0]: row for row in cells(mlps_of(EVENTFUL), "Accesses")}
    assert rows["7"][7:] == ["refused", "—", "sensitive_role (sensitive_models)"]
    assert rows["10"][7:] == ["unconfirmed", "approval-1", "须履行 owed: mask_fields"]
    assert rows["11"][7:] == ["confirmed", "approval-1", "已履行 met: mask_fields"]
    assert rows["7"][4:6] == ["p1:" + "a" * 16 + "…", "mdl-fin-risk-v3\n推理 inference"]
    sealed = as_logged(0, allowed(1))
    body = {**sealed.body, "purpose": None, "sealed": {"purpose": "k1:x"}}
    hidden = replace(EMPTY, listed={"sensitive.access": Listed([replace(sealed, body=body)], 1)})
    assert cells(mlps_of(hidden), "Accesses")[0][6] == "sealed"


def test_refusals_that_stand_elsewhere_are_told_of() -> None:
    """A day with refusals by rules, all of them of sensitive models or without an entry, is not said to have none."""
    evidence = NightLog.of(refused(1), summary(4, outcome="deny")).evidence()
    section = under(mlps_of(evidence), "Waivers, and what rules forbade of ordinary models")
    nothing, elsewhere = [english(block.text) for block in section if isinstance(block, Paragraph)]
    assert nothing == "No waiver was used on this day, and no rule forbade a request for an ordinary model."
    assert elsewhere.startswith("Refusals of sensitive models stand under `Accesses`. What rules refused with another status than 403")
    busy = under(mlps_of(EVENTFUL), "Waivers, and what rules forbade of ordinary models")
    assert [english(block.text) for block in busy if isinstance(block, Paragraph)] == [elsewhere]


def test_ids_of_approvals_are_told_by_their_ends() -> None:
    """Where an access or a step names one, twelve digits that the list of all approvals has in full; an id that stands sealed says so."""
    approval = "01900000-0000-7000-8000-6f6f9d5b56c9"
    access = allowed(1, approval_id=approval)
    (row,) = cells(mlps_of(NightLog.of(access).evidence()), "Accesses")
    assert row[8] == "…6f6f9d5b56c9"
    sealed = as_logged(0, allowed(1))
    hidden = replace(
        EMPTY, listed={"sensitive.access": Listed([replace(sealed, body={**sealed.body, "sealed": {"approval_id": "k1:x"}})], 1)}
    )
    assert cells(mlps_of(hidden), "Accesses")[0][8] == "sealed"


def test_unmet_obligation_has_its_incident() -> None:
    """The access that nobody confirmed, and the entry that says so, or that there is none."""
    (row,) = cells(mlps_of(EVENTFUL), "Obligations that nobody confirmed")
    assert (row[0], row[-1]) == ("12", "13")
    gone = replace(EVENTFUL, unmet=[replace(EVENTFUL.unmet[0], incident=None)])
    assert cells(mlps_of(gone), "Obligations that nobody confirmed")[0][-1] == "no entry"


def test_verdicts_have_their_evidence() -> None:
    """A row of a clause has figures with their numbers and entries; how a figure was counted stands once, under its number."""
    rows = {row[0].split("\n")[0]: row for row in cells(mlps_of(EVENTFUL), "Clause by clause")}
    row = rows["8.1.4.11 b)"]
    figures = cells(mlps_of(EVENTFUL), "How the figures were counted")
    (figure,) = [figure for figure in figures if figure[1].endswith("(accesses_sensitive)")]
    assert figure[2:] == ["5", "kind=sensitive.access outcome=allowed|refused|unconfirmed"]
    assert f"[{figure[0]}] 对敏感模型的访问 accesses to sensitive models: 5\n条目 entries 5, 6, 7, 10, 12" in row[2]
    assert [figure[0] for figure in figures] == [str(number) for number in range(1, len(figures) + 1)]
    assert len({figure[1] for figure in figures}) == len(figures)
    assert not any("kind=" in row[2] for row in rows.values())
    assert row[3] == "partly met"
    assert row[4].startswith("accesses with obligations, such as masking, that nobody confirmed in time: 1")
    assert "待核实 to check" in rows["8"][0]


@BOTH
def test_the_day_on_which_the_log_begins_is_told(report: Report) -> None:
    """A night with entry 0 says that nothing is known of what was before; later nights, and one without entries, do not."""
    says = "The log begins on this day, with entry 0."
    assert EVENTFUL.first == 0
    assert says in "\n".join(texts(report(EVENTFUL).cover))
    for other in (replace(EVENTFUL, first=1), EMPTY):
        assert says not in "\n".join(texts(report(other).cover))


@pytest.mark.parametrize(
    ("day", "hours", "note"),
    [(date(2026, 3, 29), 23, "23 hours"), (date(2026, 10, 25), 25, "25 hours"), (date(2026, 11, 29), 24, None)],
)
def test_chart_has_a_place_for_each_hour(day: date, hours: int, note: str | None) -> None:
    """A day of 23 or 25 hours has as many places, the hour that comes twice twice, and the cover says so."""
    night = Night(day, "Europe/Berlin")
    minutes = [night.begin + timedelta(hours=hour) for hour in range(hours)]
    evidence = NightLog.of(*(summary(number + 1, minute) for number, minute in enumerate(minutes))).evidence(night)
    document = mlps_of(evidence)
    (chart,) = [block for block in document.blocks if isinstance(block, Chart)]
    assert list(chart.series[0].values) == list(range(1, hours + 1))
    assert len(chart.places) == hours
    assert (chart.places.count("02"), len(set(chart.places))) == {23: (0, 23), 25: (2, 24), 24: (1, 24)}[hours]
    notes = [english(block.text) for block in document.cover if isinstance(block, Paragraph) and "clocks" in english(block.text)]
    assert [text.split(":")[0] for text in notes] == ([note] if note else [])


def test_decisions_are_told_by_outcome() -> None:
    """Allowed at the foot of the chart, refusals above it; rows by tenant and model."""
    document = mlps_of(EVENTFUL)
    (chart,) = [block for block in document.blocks if isinstance(block, Chart)]
    assert {english(each.name): sum(each.values) for each in chart.series} == {
        "allowed": 92,
        "refused by rules": 7,
        "over quota": 20,
        "shed under load": 0,
        "error": 0,
    }
    assert chart.series[0].values[12] == 92
    assert chart.series[2].values[13] == 20
    assert cells(document, "By tenant and model") == [
        ["acme", "m", "90", "7", "0", "0", "0"],
        ["acme", "mdl-fin-risk-v3", "2", "0", "0", "0", "0"],
        ["globex", "m", "0", "0", "20", "0", "0"],
    ]


@BOTH
def test_integrity_has_the_verifiers_own_words(report: Report) -> None:
    """Its output and the signed checkpoint, line by line, and that nothing kept elsewhere was compared."""
    document = report(EVENTFUL)
    lines = [tuple(block.lines) for block in under(document, "Integrity of the log") if isinstance(block, Lines)]
    assert lines[0] == tuple(EVENTFUL.integrity.text)
    assert lines[2] == tuple(EVENTFUL.integrity.note.splitlines())
    assert "No checkpoint that was kept elsewhere was compared" in whole_text(document)


@BOTH
def test_a_night_that_joins_no_other_says_so(report: Report) -> None:
    """Where entries come before the file and no report of the day before was there; the log's first file has none before it."""
    limit = "was on the shelf to join"
    joined = replace(EVENTFUL.integrity, joins=3)
    assert limit in whole_text(report(replace(EVENTFUL, first=3)))
    assert limit not in whole_text(report(replace(EVENTFUL, first=3, integrity=joined)))
    assert limit not in whole_text(report(replace(EVENTFUL, first=0)))


@BOTH
def test_log_that_is_not_whole_is_a_warning(report: Report) -> None:
    """Tampering, unproven older entries and cut registers are said at the top of the page."""
    tampered = replace(EVENTFUL.integrity, report=replace(EVENTFUL.integrity.report, verdict="tampered"), unproven=(4, 5))
    document = report(replace(EVENTFUL, integrity=tampered, cut=frozenset({"requests"}), purged=3, late_decisions=2))
    warnings = [english(block.text) for block in under(document, "Integrity of the log") if getattr(block, "style", "") == "warning"]
    assert [text.split(" ")[0] for text in warnings] == ["The", "Older", "There"]
    assert "4, 5" in warnings[1]
    assert warnings[2].endswith("requests")
    assert "not counted: 3." in whole_text(document)
    assert facts_of(document)["log: verdict; checkpoint"].startswith("tampered")


def test_unknown_loss_is_not_nothing() -> None:
    """A gap of which nobody knows what it lost says unknown."""
    entry = as_logged(3, purge("d365-2025-01"))
    gap = replace(entry, body={"kind": "audit.gap", "outcome": "done", "recorded": "r", "from": "a", "to": "b", "reason": "stopped"})
    document = mlps_of(replace(EMPTY, listed={"audit.gap": Listed([gap], 1), "audit.purge": Listed([entry], 1)}))
    assert cells(document, "Gaps") == [["3", "a", "b", "stopped", "unknown", "—"]]
    assert cells(document, "Purges")[0][2:] == ["d365-2025-01", "0", "9", "10"]


@BOTH
def test_controls_that_are_missing_are_listed(report: Report) -> None:
    """What is not in place is said; what the log or the imprint shows is not said to be missing."""
    missing = "\n".join(row[0] for row in cells(report(EMPTY), "Controls that are not in place"))
    assert "no purge" in missing
    assert "People cannot be erased" in missing
    assert "No checkpoint is kept" in missing
    assert "no trusted time stamp" in missing
    fewer = report(
        replace(EVENTFUL, listed={**EVENTFUL.listed, "audit.purge": Listed((), 1)}, integrity=replace(EVENTFUL.integrity, anchors=1)),
        replace(IMPRINT, timestamp=True),
    )
    left = "\n".join(row[0] for row in cells(fewer, "Controls that are not in place"))
    assert not any(said in left for said in ("no purge", "cannot be erased", "No checkpoint is kept", "no trusted time stamp"))
    assert "certified" in left


@pytest.mark.parametrize(("report", "file"), [(mlps_of, "mlps.pdf"), (gdpr_of, "gdpr.pdf")])
def test_cover_says_how_to_check(report: Report, file: str) -> None:
    """Three commands with the file's own name, the root's fingerprint, and what no signature proves."""
    document = report(EVENTFUL)
    (lines,) = [block for block in document.cover if isinstance(block, Lines)]
    assert list(lines.lines) == [
        f"sluice report verify {file} --root ROOT.pem",
        f"sluice-verify --report {file} --root ROOT.pem",
        f"sh verify.sh {file} ROOT.pem",
    ]
    assert facts_of(document)["report root certificate, SM3"] == IMPRINT.root
    cover = "\n".join(texts(document.cover))
    assert (
        "SM2-compatible signature; not a certified commercial cryptography product (商用密码产品); key custody is the operator's." in cover
    )
    assert "ECDSA" not in cover
    assert "ECDSA" in "\n".join(texts(report(EVENTFUL, replace(IMPRINT, pades=True)).cover))


def test_consultations_are_summed_up_and_listed() -> None:
    """Art. 15: by person with first and last time, and each with date, purpose and masked recipient; how many have no room is said."""
    late = NOON + timedelta(hours=3)
    log = NightLog.of(allowed(1), allowed(2, late), refused(3))
    document = gdpr_of(replace(log.evidence(), more_consultations=4))
    rows = cells(document, "By person")
    assert [row[:8] for row in rows] == [
        [ANNA, "acme", "mdl-fin-risk-v3", "credit-scoring", "allowed", "2", "2026-11-29\n04:00:00Z\n2026-11-29\n07:00:00Z", "d365"],
        [ANNA, "acme", "mdl-fin-risk-v3", "credit-scoring", "refused", "1", "2026-11-29\n04:00:00Z\n2026-11-29\n04:00:00Z", "d365"],
    ]
    each = cells(document, "Each entry: date, purpose, recipient")
    assert [(row[0], row[1], row[5], row[6]) for row in each] == [
        ("0", "2026-11-29\n04:00:00Z", "credit-scoring", "operator #1"),
        ("1", "2026-11-29\n07:00:00Z", "credit-scoring", "operator #1"),
        ("2", "2026-11-29\n04:00:00Z", "credit-scoring", "operator #1"),
    ]
    assert "stand in entries.csv: 4." in whole_text(document)


def test_entries_of_no_form_stop_nothing() -> None:
    """A log may hold what no version ever wrote: members missing, of other types, no instants; the report shows them as they are."""
    odd = {"kind": "x", "outcome": 3, "recorded": 5, "operator": None, "tenant": ["a"], "diff": {"a": 1}, "obligations": 7, "reasons": 8}
    kinds = ("sensitive.access", "quota.in_force", "log.read", "audit.gap", "key.created", "policy.activated", "report.made", "waiver.used")
    entry = replace(as_logged(9, allowed(1)), body=odd)
    listed = {kind: Listed([entry], 1) for kind in (*kinds, "approval.asked", "subject.request", "subject.erasure", "audit.malformed")}
    strange = replace(EMPTY, listed=listed)
    assert cells(mlps_of(strange), "Changes of quotas") == [["9", "5", "x", "—", '["a"]', "—", '{"a":1}']]
    assert cells(gdpr_of(strange), "Erasures")[0][0] == "9"
