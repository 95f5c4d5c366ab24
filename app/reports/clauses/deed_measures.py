"""Figures about what was done: decisions, accesses to sensitive models, approvals, keys, rules and quotas. Pure."""

from collections.abc import Callable, Mapping

from app.reports.clauses.clause import Measured
from app.reports.clauses.measuring import ENTRIES, ITEMS, TIMES, Measure, Take, asked, counted, first
from app.reports.document import Words
from app.reports.evidence.accesses import ASKED, FOLLOWING, INCIDENT
from app.reports.evidence.facts import Approval, Evidence
from app.reports.nights.night import SUMMARY

DECISIONS = Words("次决定", "decisions")


def _decisions(*outcomes: str, but: str | None = None) -> Take:
    """Decisions that ended so, of the minutes of the day; all but some where `but` names those."""

    def take(evidence: Evidence) -> Measured:
        total = sum(one.count for one in evidence.decisions if one.outcome != but and (not outcomes or one.outcome in outcomes))
        of = [one for one in evidence.kinds if one.kind == SUMMARY and one.outcome != but and (not outcomes or one.outcome in outcomes)]
        query = f"sum of `count` over {asked(SUMMARY, '|'.join(outcomes) or (f'not {but}' if but else None))}; decisions.csv"
        return Measured(total, query, first(sorted(seq for one in of for seq in (one.first, one.last))))

    return take


def _late_decisions(evidence: Evidence) -> Measured:
    return Measured(evidence.late_decisions, "sum of `count` over summaries of the day whose `minute` is of an earlier day")


def _unapproved(evidence: Evidence) -> Measured:
    query = (
        f"{asked('sensitive.access', 'allowed|unconfirmed')} with `approval_needed`: without `approval_id`, or of one that was not in force; "
        "entries without `approval_needed` do not say it"
    )
    if evidence.unapproved is None:
        return Measured(None, query)
    return Measured(evidence.unapproved.total, query, evidence.unapproved.entries)


def _unmet(evidence: Evidence) -> Measured:
    incidents = evidence.of(INCIDENT)
    known = {unmet.incident for unmet in evidence.unmet}
    others = [entry.seq for entry in incidents.entries if entry.seq not in known]
    query = f"{asked('sensitive.access', 'unconfirmed')} without a later {' or '.join(FOLLOWING)} one; {asked(INCIDENT)}"
    total = len(evidence.unmet) + len(others) + incidents.more
    unknown = "unconfirmed" in evidence.cut and not total
    return Measured(None if unknown else total, query, first(sorted([*(one.access.seq for one in evidence.unmet), *others])))


def _standing(state: str) -> Take:
    """Approvals that stand so at the end of the day."""
    return _approvals(lambda approval: approval.state == state, f"approvals that were {state} at the end of the day, by their entries")


def _approvals(is_one: Callable[[Approval], bool], query: str) -> Take:
    def take(evidence: Evidence) -> Measured:
        found = [approval for approval in evidence.standing if is_one(approval)]
        unknown = "approvals" in evidence.cut and not found
        return Measured(None if unknown else len(found), query, first(seq for approval in found for seq in approval.entries))

    return take


MEASURES: Mapping[str, Measure] = {
    "decisions_total": Measure(Words("决定", "decisions"), DECISIONS, _decisions()),
    "decisions_allowed": Measure(Words("允许的决定", "decisions that allow"), DECISIONS, _decisions("allow")),
    "decisions_refused": Measure(Words("拒绝的决定", "decisions that refuse"), DECISIONS, _decisions(but="allow")),
    "decisions_denied": Measure(Words("被规则拒绝的决定", "decisions refused by a rule"), DECISIONS, _decisions("deny")),
    "decisions_over_quota": Measure(Words("因配额拒绝的决定", "decisions refused by a quota"), DECISIONS, _decisions("quota")),
    "decisions_shed": Measure(Words("因过载拒绝的决定", "decisions refused to shed load"), DECISIONS, _decisions("shed")),
    "decisions_failed": Measure(Words("未能作出的决定", "decisions that could not be made"), DECISIONS, _decisions("error")),
    "decisions_late": Measure(Words("迟到的决定计数", "decisions counted too late for their day"), DECISIONS, _late_decisions),
    "policy_refusals": Measure(
        Words("规则禁止的对普通模型的请求", "requests for ordinary models that a rule forbade"), ENTRIES, counted("policy.refusal")
    ),
    "waivers": Measure(Words("使用的豁免", "waivers used"), TIMES, counted("waiver.used")),
    "accesses_sensitive": Measure(
        Words("对敏感模型的访问", "accesses to sensitive models"), TIMES, counted("sensitive.access", outcomes=ASKED)
    ),
    "accesses_allowed": Measure(Words("允许的访问", "accesses allowed"), TIMES, counted("sensitive.access", outcomes=("allowed",))),
    "accesses_refused": Measure(Words("拒绝的访问", "accesses refused"), TIMES, counted("sensitive.access", outcomes=("refused",))),
    "accesses_unconfirmed": Measure(
        Words("待确认的访问", "accesses to be confirmed"), TIMES, counted("sensitive.access", outcomes=("unconfirmed",))
    ),
    "accesses_confirmed": Measure(Words("已确认的访问", "accesses confirmed"), TIMES, counted("sensitive.access", outcomes=("confirmed",))),
    "accesses_cancelled": Measure(
        Words("未使用的访问", "accesses never used"), TIMES, counted("sensitive.access", outcomes=("cancelled",))
    ),
    "accesses_without_approval": Measure(Words("缺少批准的访问", "accesses without the approval they need"), TIMES, _unapproved),
    "obligations_unmet": Measure(Words("未按时确认的义务", "obligations not confirmed in time"), TIMES, _unmet),
    "approvals_asked": Measure(Words("申请的批准", "approvals asked for"), TIMES, counted("approval.asked")),
    "approvals_approved": Measure(Words("给予的批准", "approvals given"), TIMES, counted("approval.approved")),
    "approvals_refused": Measure(Words("拒绝的批准", "approvals refused"), TIMES, counted("approval.refused")),
    "approvals_revoked": Measure(Words("撤回的批准", "approvals taken back"), TIMES, counted("approval.revoked")),
    "approvals_open": Measure(Words("待决的批准", "approvals waiting at the end of the day"), ITEMS, _standing("asked")),
    "approvals_in_force": Measure(Words("有效的批准", "approvals in force at the end of the day"), ITEMS, _standing("approved")),
    "approvals_expired": Measure(Words("过期的批准", "approvals that are over"), ITEMS, _standing("expired")),
    "approvals_self": Measure(
        Words("自我批准", "approvals by oneself"),
        ITEMS,
        _approvals(lambda approval: approval.by_oneself, "approvals with the same `operator` in approval.asked and approval.approved"),
    ),
    "keys_created": Measure(Words("创建的密钥", "keys made"), ITEMS, counted("key.created")),
    "keys_rotated": Measure(Words("轮换的密钥", "keys rotated"), ITEMS, counted("key.rotated")),
    "keys_revoked": Measure(Words("吊销的密钥", "keys revoked"), ITEMS, counted("key.revoked")),
    "policy_changes": Measure(Words("规则变更", "changes of rules"), TIMES, counted("policy.activated")),
    "policy_changes_refused": Measure(Words("被拒的规则变更", "changes of rules refused"), TIMES, counted("policy.refused")),
    "quota_changes": Measure(Words("配额变更", "changes of quotas"), TIMES, counted("quota.in_force", "quota.deleted")),
    "quota_rollbacks": Measure(Words("配额回滚", "quotas rolled back"), TIMES, counted("quota.rolled_back")),
}
