"""Terms that both reports use: kinds of entries, outcomes, column titles, and how nothing is said. `{…}` stands for a value."""

from app.reports.document import Words

ARROW, DASH, SEPARATOR, CUT = " → ", "—", " · ", "…"
NOT_NAMED = Words("未填写", "not filled in")
UNKNOWN = Words("未知", "unknown")
SEALED = Words("密封", "sealed")
NO_ENTRY = Words("无条目", "no entry")
MASKED = Words("操作者 {number} 号", "operator #{number}")

KINDS = {
    "quota.proposed": Words("提议变更配额", "quota change proposed"),
    "quota.approved": Words("批准配额变更", "quota change approved"),
    "quota.refused": Words("拒绝配额变更", "quota change refused"),
    "quota.in_force": Words("配额生效", "quota in force"),
    "quota.rolled_back": Words("配额回退", "quota rolled back"),
    "quota.deleted": Words("配额删除", "quota deleted"),
    "sensitive.access": Words("访问敏感模型", "access to a sensitive model"),
    "obligation.unmet": Words("义务未确认（事件）", "obligation not confirmed (incident)"),
    "policy.refusal": Words("规则禁止", "forbidden by a rule"),
    "waiver.used": Words("使用豁免", "waiver used"),
    "decisions.minute": Words("每分钟决定计数", "decisions of a minute"),
    "approval.asked": Words("申请批准", "approval asked for"),
    "approval.approved": Words("给予批准", "approval given"),
    "approval.refused": Words("拒绝批准", "approval refused"),
    "approval.revoked": Words("撤回批准", "approval taken back"),
    "policy.activated": Words("规则生效", "rules in force"),
    "policy.refused": Words("新规则被拒", "new rules refused"),
    "key.created": Words("创建密钥", "key made"),
    "key.rotated": Words("轮换密钥", "key rotated"),
    "key.revoked": Words("吊销密钥", "key revoked"),
    "report.made": Words("生成报告", "reports made"),
    "log.read": Words("读取日志", "log read"),
    "subject.request": Words("数据主体请求", "request of a person"),
    "subject.access": Words("向数据主体提供", "given to a person"),
    "subject.erasure": Words("删除数据主体的密钥", "erasure of a person"),
    "subject.answer": Words("答复数据主体", "answer to a person"),
    "breach.known": Words("知悉泄露", "breach known"),
    "breach.notified": Words("通知泄露", "breach notified"),
    "audit.purge": Words("到期清除", "purge"),
    "audit.gap": Words("日志缺口", "gap in the log"),
    "audit.malformed": Words("不合格的提交", "not an entry"),
}

OUTCOMES = {
    "done": Words("完成", "done"),
    "failed": Words("失败", "failed"),
    "refused": Words("拒绝", "refused"),
    "allowed": Words("允许", "allowed"),
    "unconfirmed": Words("待确认", "unconfirmed"),
    "confirmed": Words("已确认", "confirmed"),
    "cancelled": Words("未使用", "never used"),
    "unmet": Words("未履行", "unmet"),
    "malformed": Words("不合格", "malformed"),
    "allow": Words("允许", "allowed"),
    "deny": Words("规则拒绝", "refused by rules"),
    "quota": Words("超出配额", "over quota"),
    "shed": Words("过载拒绝", "shed under load"),
    "error": Words("错误", "error"),
}

ACTIONS = {"infer": Words("推理", "inference"), "train": Words("训练", "training")}

STATES = {
    "open": Words("待答复", "open"),
    "done": Words("已答复", "answered"),
    "refused": Words("已拒绝", "refused"),
    "asked": Words("待批准", "asked for"),
    "approved": Words("有效", "in force"),
    "revoked": Words("已撤回", "taken back"),
    "expired": Words("已到期", "expired"),
}

SHORTENED = Words(
    "假名只列前 16 位，批准编号只列后 12 位；entries.csv 中有全部。",
    "Of pseudonyms the first 16 digits stand here, of the ids of approvals the last 12; entries.csv has all.",
)
ENTRY = Words("条目", "entry")
ENTRIES = Words("条目", "entries")
TIME = Words("时间（UTC）", "time (UTC)")
OPERATOR = Words("操作者", "operator")
TENANT = Words("租户", "tenant")
SUBJECT = Words("主体（假名）", "subject (pseudonym)")
MODEL = Words("模型", "model")
PURPOSE = Words("目的", "purpose")
OUTCOME = Words("结果", "outcome")
KIND = Words("事件", "event")
COUNT = Words("数量", "count")
DETAILS = Words("说明", "details")
APPROVAL = Words("批准", "approval")
RETENTION = Words("留存类别", "retention")
FIRST = Words("首条", "first")
LAST = Words("末条", "last")
STATE = Words("状态", "state")
