"""The page on the log itself."""

from app.reports.document import Words

TITLE = Words("日志的完整性", "Integrity of the log")
INTRODUCTION = Words(
    "日志的每个条目是 SM3 哈希树的一片叶子，树根由 SM2 签名的检查点固定。下面是校验程序对本报告所据导出文件的原样输出；用 log.jsonl 可以重做。",
    "Each entry is a leaf of a tree of SM3 hashes, whose root a checkpoint fixes with an SM2 signature. What follows is what the verifier "
    "said of the export that this report is made from; log.jsonl lets anybody repeat it.",
)
COMMAND = "sluice audit verify --export log.jsonl --root ROOT.pem"
NOT_WHOLE = Words(
    "校验程序认为日志不完整或未能校验。本报告的数字以此为限。",
    "The verifier does not call the log whole. The figures of this report are worth no more than that.",
)
ROOT_OF_LOG = Words(
    "校验所用的根证书取自日志本身，没有别处的来源，也与更早的报告不符或无从比对。能改写日志的人也能换掉它：日志按未校验对待。请设置 report.log_root。",
    "The root certificate that the log was checked under was taken from the log itself, and no earlier report names the same. Whoever can "
    "rewrite the log can exchange it, too: the log counts as not checked. Set report.log_root.",
)
ROOT_PINNED = Words(
    "校验所用的根证书取自日志本身，与较早一份报告所用的相同（首次使用即信任）。要由别处证明，请设置 report.log_root。",
    "The root certificate that the log was checked under was taken from the log itself. It is the one of an earlier report (trust on first "
    "use). For proof from elsewhere set report.log_root.",
)
UNPROVEN = Words(
    "有较早的条目不能证明属于该检查点，已不予采用：{entries}",
    "Older entries that no proof leads from to the checkpoint were left out: {entries}",
)
CUT = Words(
    "较早日志中的下列内容超出报告读取的上限，依赖其全部的指标为未知：{groups}",
    "There is more in the older log than a report reads, so what depends on all of it is unknown: {groups}",
)
GROUPS = {
    "tenants": Words("租户", "tenants"),
    "requests": Words("请求", "requests"),
    "breaches": Words("泄露", "breaches"),
    "approvals": Words("批准", "approvals"),
    "unconfirmed": Words("待确认的访问", "unconfirmed accesses"),
    "incidents": Words("后来记录的事件", "incidents told later"),
    "retention": Words("留存", "retention"),
    "rules": Words("规则", "rules"),
}
PURGED = Words(
    "当日有 {count} 个条目的正文已到期清除，其内容未计入。",
    "Entries of this day whose bodies are gone by retention; what they said is not counted: {count}.",
)
LATE = Words(
    "有 {count} 个属于更早日期的条目在其报告可以生成之后才写入日志。",
    "Entries of earlier days that came into the log only when the reports of their day could already be made: {count}.",
)
LATE_DECISIONS = Words(
    "有 {count} 个决定计数过晚，计入写入的那一小时。",
    "Decisions counted too late for the day of their minute, in the hour in which they were written down: {count}.",
)
OUTPUT = Words("校验程序的输出", "What the verifier said")
REPEAT = Words("重做校验的命令，ROOT.pem 是日志的根证书", "The command to repeat it; ROOT.pem is the root certificate of the log")
NOTE = Words("检查点原文", "The checkpoint, as signed")
NO_NOTE = Words("导出文件没有可读的检查点。", "The export has no checkpoint that can be read.")
NO_ANCHORS = Words(
    "没有与保存在别处的检查点比对。若有人删去日志末尾，或以同一密钥重建整个日志，本次校验不能发现。",
    "No checkpoint that was kept elsewhere was compared. If somebody cut off the end of the log, or built another with the same key, this "
    "check does not show it.",
)
NOT_JOINED = Words(
    "生成时架上没有前一日的有效签名报告可以衔接：两日之间有无未被任何报告收入的条目，本次校验不能发现。",
    "No report of the day before with a good signature was on the shelf to join: this check does not show entries between the two days "
    "that no report has.",
)
ANCHORS = Words("已与 {count} 个保存在别处的检查点比对。", "Checkpoints that were kept elsewhere and compared: {count}.")

GAPS = Words("缺口", "Gaps")
NO_GAPS = Words("当日没有缺口条目。", "No entry of this day tells of a gap.")
LOST = Words("丢失", "lost")
REFUSED = Words("因此拒绝", "refused for it")
FROM, TO = Words("起", "from"), Words("止", "to")
REASON = Words("原因", "reason")
PURGES = Words("到期清除", "Purges")
NO_PURGES = Words("当日没有清除条目。", "No entry of this day tells of a purge.")
SHELF = Words("类别与月份", "shelf")
FIRST, LAST = Words("首条", "first"), Words("末条", "last")
MALFORMED = Words("不合格的提交", "Not entries")
NO_MALFORMED = Words("当日没有不合格的提交。", "Nothing was handed over on this day that is no entry.")
WHY = Words("不合格之处", "what is wrong")
BYTES = Words("字节", "bytes")
KEYS = Words("密钥变更", "Changes of keys")
NO_KEYS = Words("当日没有密钥变更。", "No key was made, rotated or revoked on this day.")
USE = Words("用途", "use")
USES = {"api": Words("接口", "API"), "log": Words("日志签名", "signs the log"), "report": Words("报告签名", "signs reports")}
KEY = Words("密钥", "key")
RULES = Words("规则变更", "Changes of rules")
NO_RULES = Words("当日没有规则变更。", "No rules came into force or were refused on this day.")
REVISION, PREVIOUS = Words("版本", "revision"), Words("前一版本", "the one before")
REPORTS = Words("报告的生成", "Reports made")
NO_REPORTS = Words("当日没有生成报告的条目。", "No entry of this day tells of a report.")
REPORT, OF_DAY = Words("报告", "report"), Words("所报期间", "period")
RETENTION = Words("留存", "Retention")
NO_RETENTION = Words("没有可列的留存类别。", "There is no retention class to list.")
CLASS, DAYS, OLDEST, HELD = (
    Words("类别", "class"),
    Words("天数", "days"),
    Words("最早的正文", "oldest body"),
    Words("现存正文", "bodies held"),
)
