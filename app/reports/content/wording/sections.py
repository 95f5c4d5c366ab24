"""Sections of the MLPS report, and those that both have."""

from app.reports.document import Words

MLPS_TITLE = Words("网络安全等级保护（第三级）安全审计日报", "Daily security audit report, MLPS 2.0 level 3")

DECISIONS = Words("决定与拒绝", "Decisions and refusals")
BY_HOUR = Words("每小时的决定（当地时间）", "Decisions by hour, local time")
HOW_MANY = Words("决定数", "number of decisions")
BY_MODEL = Words("按租户和模型", "By tenant and model")
NO_DECISIONS = Words("当日没有决定。", "There was no decision on this day.")
ALL_UNKNOWN = Words("未登记", "not registered")
ALLOWED = Words("允许", "allowed")
COVERAGE = Words("审计覆盖", "Coverage of the audit")
USERS = Words("用户", "Users")
USER = Words("用户", "user")
NO_USERS = Words("当日没有用户的条目。", "There is no entry of any user on this day.")
TENANTS = Words("租户", "Tenants")
NO_TENANTS = Words("没有租户。", "There are no tenants.")
EVENTS = Words("事件类型", "Kinds of events")
NO_EVENTS = Words("当日没有条目。", "There is no entry on this day.")
COMPLETE = Words("内容完整", "complete")

QUOTAS = Words("配额变更", "Changes of quotas")
NO_QUOTAS = Words("当日没有配额变更。", "No quota was changed on this day.")
VERSION = Words("版本", "version")
CHANGE = Words("变更（之前 → 之后）", "change (before → after)")

SENSITIVE = Words("敏感模型", "Sensitive models")
ACCESSES = Words("访问", "Accesses")
NO_ACCESSES = Words("当日没有对敏感模型的访问。", "Nobody asked for a sensitive model on this day.")
REASONS = Words("原因与义务", "reasons and obligations")
MET, OWED = Words("已履行", "met"), Words("须履行", "owed")
UNCOVERED = Words(
    "下列租户与敏感模型，被允许的决定多于日志中的访问：{tenants}",
    "For these tenants and sensitive models more decisions were allowed than the log has accesses: {tenants}",
)
UNMET = Words("未按时确认的义务", "Obligations that nobody confirmed")
NO_UNMET = Words("没有未按时确认的义务。", "No obligation was left unconfirmed.")
INCIDENT = Words("事件条目", "entry of the incident")
APPROVALS = Words("批准的办理", "Approvals asked for and decided")
NO_APPROVALS = Words("当日没有申请或作出批准。", "No approval was asked for or decided on this day.")
EXPIRES = Words("到期", "expires")
STANDING = Words("日终时的批准", "Approvals as they stood when the day ended")
NO_STANDING = Words("日志中没有批准。", "The log knows of no approval.")
ASKED_BY, DECIDED_BY = Words("申请人", "asked by"), Words("决定人", "decided by")
BEGINS = Words("给予", "given")
NAMED_APPROVALS = Words("当日访问所凭的批准", "Approvals that accesses of the day rest on")
NO_NAMED = Words("当日没有访问凭批准进行。", "No access of this day rests on an approval.")
WAIVERS = Words("豁免，以及规则对普通模型的禁止", "Waivers, and what rules forbade of ordinary models")
NO_WAIVERS = Words(
    "当日没有使用豁免，规则也没有禁止对普通模型的请求。",
    "No waiver was used on this day, and no rule forbade a request for an ordinary model.",
)
OTHER_REFUSALS = Words(
    "对敏感模型的拒绝列于“访问”。规则以 403 以外的状态拒绝的（暂时拒绝，或名称未登记）不逐条记录，只在“决定与拒绝”中计数。",
    "Refusals of sensitive models stand under `Accesses`. What rules refused with another status than 403, for a time or because a name is "
    "not registered, has no entry of its own: it is counted under `Decisions and refusals`.",
)

READS = Words("日志与报告的读取", "Readings of the log and of reports")
NO_READS = Words("当日没有人读取日志或报告。", "Nobody read the log or a report on this day.")
READ, QUERY = Words("读取内容", "what was read"), Words("查询", "query")

CONTROLS = Words("未落实的控制", "Controls that are not in place")
CONTROLS_INTRODUCTION = Words(
    "下列控制在本系统中没有落实，或者软件无从得知。本报告不以任何方式暗示它们存在。",
    "These controls are not in place, or software cannot know of them. Nothing in this report is meant to suggest that they are.",
)
CONTROL = Words("控制", "control")
NO_PURGE = Words(
    "没有自动的到期清除：日志正文在期限届满后仍会保留。", "There is no purge by retention: bodies stay in the log after their time is over."
)
NO_ERASURE = Words(
    "没有按人销毁密钥的删除：只能记录请求和拒绝的依据。",
    "People cannot be erased by destroying their key: requests and grounds of refusal are recorded, no more.",
)
NO_ANCHOR = Words(
    "没有在数据库管理员不能改写之处保存检查点：删去日志末尾或替换整个日志不能由日志自身发现。",
    "No checkpoint is kept where the database's administrator cannot write: the log alone does not show that its end was cut off, or all of it replaced.",
)
NO_BACKUP = Words(
    "备份与恢复演练由运营者负责，软件不知其情况。", "Backups and restore tests are the operator's; software knows nothing of them."
)
NO_TIMESTAMP = Words(
    "没有可信时间戳：签名时间只是签名机器的时钟。", "There is no trusted time stamp: the time of signing is the signer's clock."
)
NO_HSM = Words("签名密钥保存在加密文件中，不在密码机或密码卡中。", "Signing keys lie in encrypted files, not in an HSM.")
NO_CERTIFIED = Words(
    "签名与 SM2 兼容，但不是经认证的商用密码产品。", "Signatures are SM2-compatible, and no certified commercial cryptography product."
)
NO_SECOND_FACTOR = Words(
    "接口密钥是单一鉴别因素；双因素鉴别须由前置系统提供。",
    "An API key is one factor; a second one must come from what stands before Sluice.",
)
NO_REVIEW = Words(
    "对审计记录的人工分析与处理是否完成，软件不知。", "Whether people analysed the records and acted on them, software does not know."
)
