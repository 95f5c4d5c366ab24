"""Figures about the log itself: how much there is, whether it is whole and complete, how long it is kept, who read it. Pure."""

from collections.abc import Iterable, Mapping

from app.audit.verification.report import EXIT_CODES
from app.audit.verification.retention import kept_until
from app.instants import instant, rfc3339
from app.reports.clauses.clause import Measured
from app.reports.clauses.measuring import (
    DAYS,
    ENTRIES,
    HOURS,
    ITEMS,
    SHARE,
    STATUS,
    TIMES,
    Measure,
    asked,
    counted,
    first,
    numbers,
    sure,
    unknown,
)
from app.reports.document import Words
from app.reports.evidence.facts import Covered, Evidence, Logged
from app.reports.evidence.integrity import closing_of

SIX_MONTHS_DAYS = 184
"""The longest six months of a calendar: from 1 July on, or from 1 March."""
_VERIFY = "sluice audit verify --export log.jsonl --root ROOT"


def _entries(evidence: Evidence) -> Measured:
    shown = (seq for kind in evidence.kinds for seq in (kind.first, kind.last))
    return Measured(evidence.entries, "log.jsonl, every entry of the day; entries.csv has one row for each", first(sorted(shown)))


def _incomplete(evidence: Evidence) -> Measured:
    query = "entries without date and time, user, kind, outcome, or a member that its kind must have (docs/reference/log-entries.md)"
    return Measured(evidence.incomplete.total, query, evidence.incomplete.entries)


def _share_complete(evidence: Evidence) -> Measured:
    complete = sum(kind.complete for kind in evidence.kinds)
    query = "entries with date and time, user, kind, outcome and all that its kind must have / all entries of the day"
    return Measured(complete / evidence.entries if evidence.entries else None, query, first(kind.first for kind in evidence.kinds))


def _operators(evidence: Evidence) -> Measured:
    return Measured(len(evidence.operators), "different `operator` among the entries of the day", first(_firsts(evidence.operators)))


def _tenants(evidence: Evidence) -> Measured:
    return Measured(len(evidence.tenants), "tenants with a quota, and every `tenant` among the entries of the day")


def _silent_tenants(evidence: Evidence) -> Measured:
    silent = sum(tenant.entries == 0 for tenant in evidence.tenants)
    known = "tenants" not in evidence.cut
    return Measured(silent if known else None, "tenants with a quota that are the `tenant` of no entry of the day")


def _uncovered(evidence: Evidence) -> Measured:
    query = (
        "tenant and model of kind=decisions.minute outcome=allow for a sensitive model whose `count`, but for those of the day's first and last "
        "minute, come to more than its kind=sensitive.access outcome=allowed|unconfirmed of the day"
    )
    return Measured(len(evidence.uncovered), query)


def _verdict(evidence: Evidence) -> Measured:
    integrity = evidence.integrity
    # Where the verifier accepted nothing that closes the file, older entries have no proof for that reason alone.
    altered = integrity.unproven and closing_of(integrity) is not None
    status = EXIT_CODES["tampered" if altered else integrity.report.verdict]
    if integrity.root_from == "log" and status != EXIT_CODES["tampered"]:
        status = EXIT_CODES["unchecked"]  # a root that came with what it vouches for vouches for nothing
    named = (finding.seq for finding in integrity.report.findings if finding.seq is not None)
    return Measured(status, _VERIFY, first((*named, *integrity.unproven)))


def _missing(evidence: Evidence) -> Measured:
    missing = [one for one in evidence.integrity.report.findings if one.what == "order" and one.seq is not None]
    return Measured(len(missing), f"{_VERIFY}: entries that are missing or stand in another place", first(one.seq or 0 for one in missing))


def _lost(evidence: Evidence) -> Measured:
    gaps = evidence.of("audit.gap")
    lost = [(gap, gap.body.get("lost")) for gap in gaps.entries]
    total = sum(count for _, count in lost if type(count) is int)
    untold = [gap for gap, count in lost if type(count) is not int]
    shown = numbers(gap for gap, count in lost if count != 0)
    unsure = untold or gaps.more
    return Measured(None if unsure and not total else total, f"sum of `lost` over {asked('audit.gap')}, at least", shown)


def _untold(evidence: Evidence) -> Measured:
    untold = [gap for gap in evidence.of("audit.gap").entries if type(gap.body.get("lost")) is not int]
    return Measured(sure(evidence, len(untold), "audit.gap"), f"{asked('audit.gap')} without `lost`", numbers(untold))


def _late(evidence: Evidence) -> Measured:
    query = "entries of earlier days that came into the log when the reports of their day could already be made"
    return Measured(evidence.late.total, query, numbers(evidence.late.entries))


def _early(evidence: Evidence) -> Measured:
    early = [purge for purge in evidence.of("audit.purge").entries if _too_early(purge)]
    return Measured(
        sure(evidence, len(early), "audit.purge"),
        f"{asked('audit.purge')} recorded before the time of its `shelf` was over",
        numbers(early),
    )


def _too_early(purge: Logged) -> bool:
    until = kept_until(str(purge.body.get("shelf")))
    return until is None or purge.recorded < until


def _short_classes(evidence: Evidence) -> Measured:
    short = [one for one in evidence.retention if one.days < SIX_MONTHS_DAYS and one.oldest is not None]
    query = f"retention classes of less than {SIX_MONTHS_DAYS} days of which the log has bodies"
    known = short or "retention" not in evidence.cut
    return Measured(len(short) if known else None, query, first(one.seq for one in short if one.seq is not None))


def _least_days(evidence: Evidence) -> Measured:
    days = [one.days for one in evidence.retention if one.oldest is not None]
    least = min(days, default=None) if "retention" not in evidence.cut else None
    return Measured(least, "the shortest retention class of which the log has bodies")


def _oldest_days(evidence: Evidence) -> Measured:
    oldest = min(((one.oldest, one.seq) for one in evidence.retention if one.oldest is not None), default=None)
    query = f"days from the oldest body that the log has to {rfc3339(evidence.night.end)}"
    if oldest is None or "retention" in evidence.cut:
        return Measured(None, query)
    age = evidence.night.end - instant(oldest[0], "recorded")
    return Measured(age.total_seconds() / 86400, query, () if oldest[1] is None else (oldest[1],))


def _firsts(covered: Iterable[Covered]) -> list[int]:
    return [one.first for one in covered if one.first is not None]


MEASURES: Mapping[str, Measure] = {
    "entries_total": Measure(Words("当日条目数", "entries of the day"), ENTRIES, _entries),
    "entries_incomplete": Measure(Words("内容不全的条目", "records that lack something"), ENTRIES, _incomplete),
    "entries_late": Measure(Words("迟到的条目", "entries that came too late for their day"), ENTRIES, _late),
    "share_complete": Measure(Words("内容完整的比例（1 为全部）", "share of complete records, 1 is all"), SHARE, _share_complete),
    "operators": Measure(Words("有条目的用户", "users with entries"), ITEMS, _operators),
    "operators_without_entries": Measure(
        Words("没有条目的活动用户", "active users without an entry"), ITEMS, unknown("who did something and left no entry")
    ),
    "tenants": Measure(Words("租户", "tenants"), ITEMS, _tenants),
    "tenants_without_entries": Measure(Words("没有条目的租户", "tenants without an entry"), ITEMS, _silent_tenants),
    "tenants_uncovered": Measure(
        Words("使用次数多于访问条目的租户与敏感模型", "tenants and models with more uses than accesses in the log"), ITEMS, _uncovered
    ),
    "log_verdict": Measure(
        Words("日志校验结果（0 完整，4 篡改，6 未能校验，7 缺失）", "verdict on the log (0 whole, 4 tampered, 6 unchecked, 7 missing)"),
        STATUS,
        _verdict,
    ),
    "gaps": Measure(Words("缺口", "gaps"), TIMES, counted("audit.gap")),
    "gaps_unexplained": Measure(Words("无条目说明的缺口", "gaps without an entry"), TIMES, _missing),
    "gaps_untold": Measure(Words("损失不明的缺口", "gaps of which nobody knows what was lost"), TIMES, _untold),
    "lost_records": Measure(Words("丢失的记录", "records lost"), ENTRIES, _lost),
    "malformed": Measure(Words("不合格的提交", "not entries"), TIMES, counted("audit.malformed")),
    "purges": Measure(Words("到期清除", "purges"), TIMES, counted("audit.purge")),
    "purges_early": Measure(Words("提前清除", "purges before time"), TIMES, _early),
    "anchors": Measure(
        Words("已比对的外存检查点", "checkpoints kept elsewhere, compared"),
        ITEMS,
        lambda evidence: Measured(evidence.integrity.anchors, f"{_VERIFY} --anchor FILE"),
    ),
    "backup_age_hours": Measure(Words("最近备份距今小时数", "age of the newest backup, hours"), HOURS, unknown("backups are made outside")),
    "restore_test": Measure(Words("恢复演练", "restore test"), TIMES, unknown("backups are restored outside")),
    "reads_of_log": Measure(Words("读取日志", "readings of the log"), TIMES, counted("log.read", outcomes=("done",))),
    "reads_refused": Measure(Words("被拒的读取", "readings refused"), TIMES, counted("log.read", outcomes=("refused",))),
    "reports_made": Measure(Words("生成的报告", "reports made"), TIMES, counted("report.made", outcomes=("done",))),
    "reports_failed": Measure(
        Words("未能生成的报告", "reports that could not be made"), TIMES, counted("report.made", outcomes=("failed",))
    ),
    "classes_below_six_months": Measure(Words("短于六个月的留存类别", "retention classes below six months"), ITEMS, _short_classes),
    "retention_days_least": Measure(Words("最短留存天数", "shortest retention, days"), DAYS, _least_days),
    "oldest_body_days": Measure(Words("最早留存条目距今天数", "age of the oldest entry that is kept, days"), DAYS, _oldest_days),
}
