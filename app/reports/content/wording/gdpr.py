"""Sections of the report on personal data."""

from app.reports.document import Words

GDPR_TITLE = Words("个人信息保护日报（GDPR 与个保法）", "Daily report on personal data, GDPR and PIPL")
MASKING = Words(
    "本报告不写操作者姓名，只写编号；编号仅在本报告内有效。主体以租户的假名出现。entries.csv 中有操作者名称，不要随本报告交给个人。",
    "Operators are numbered in this report, not named; the numbers hold in this report alone. People stand in it by pseudonyms of their tenant. "
    "entries.csv names operators: do not hand it to a person together with this report.",
)

ACCESS = Words("查阅权：当日对个人数据的查询", "Right of access: consultations of the day")
ACCESS_INTRODUCTION = Words(
    "每次经由 Sluice 以某人名义访问敏感模型，视为一次查询。第十五条第一款：(a) 目的、(b) 类别、(c) 接收方、(d) 期限、(g) 来源、(h) 自动化决策列于下表；"
    "(e) 更正、删除等权利与 (f) 申诉权由运营者告知。",
    "Each access to a sensitive model on behalf of a person counts as a consultation. Of Art. 15(1), the tables give (a) purposes, (b) categories, "
    "(c) recipients, (d) time of keeping, (g) source and (h) automated decisions; (e) the rights to rectification and erasure and (f) to complain are "
    "for the operator to tell.",
)
BY_PERSON = Words("按人汇总", "By person")
NO_CONSULTATIONS = Words("当日没有对个人数据的查询。", "Nobody's data was consulted on this day.")
MORE = Words(
    "另有 {count} 次查询未列入本表，见 entries.csv。", "Consultations that have no room in this table, and stand in entries.csv: {count}."
)
TIMES = Words("首次 / 末次（UTC）", "first / last (UTC)")
CATEGORY = Words("数据类别", "categories of data")
AUTOMATED = Words("自动化决策", "automated decision")
NOT_REGISTERED = Words("登记未载明", "the register does not say")
EACH = Words("逐条：日期、目的与接收方", "Each entry: date, purpose, recipient")
RECIPIENT = Words("接收方", "recipient")
SOURCE = Words("来源：调用方经网关提供。", "Source: the caller, by way of the gateway.")

REQUESTS = Words("数据主体的请求", "Requests of people")
REQUESTS_LIST = Words("日终时的请求", "Requests as they stood when the day ended")
NO_REQUESTS = Words("没有登记任何请求。", "No request is recorded.")
REQUEST, ARTICLE = Words("请求", "request"), Words("条款", "article")
ASKED, DUE = Words("提出", "asked"), Words("期限", "due")
ANSWER = Words("答复与依据", "answer and ground")
DAYS_LEFT = Words("尚余 {days} 天", "days left: {days}")
OVERDUE = Words("已逾期 {days} 天", "days overdue: {days}")
ANSWERED = Words("{at} 答复", "answered {at}")
REFUSED_ON = Words("{at} 拒绝，依据 {ground}", "refused {at} on {ground}")
HANDLING = Words("当日的办理", "What was done on this day")
NO_HANDLING = Words("当日没有提出、答复或拒绝请求，也没有删除。", "Nothing was asked, answered, refused or erased on this day.")
ERASURES = Words("删除", "Erasures")
NO_ERASURES = Words("当日没有删除。", "Nobody was erased on this day.")
GROUND = Words("依据", "ground")

BREACHES = Words("个人数据泄露：72 小时时钟", "Breaches of personal data: the clock of 72 hours")
BREACH_LIST = Words("泄露登记（第三十三条第五款）", "Register of breaches (Art. 33(5))")
NO_BREACHES = Words("没有登记任何泄露。", "No breach is recorded.")
BREACH, KNOWN = Words("泄露", "breach"), Words("知悉", "known")
CLOCK = Words("时钟（至日终）", "clock, when the day ended")
PEOPLE = Words("涉及人数", "people")
NOTIFIED = Words("通知", "notified")
HOURS_LEFT = Words("尚余 {hours} 小时", "hours left: {hours}")
HOURS_OVER = Words("已超时 {hours} 小时", "hours over: {hours}")
IN_TIME = Words("按时，知悉后 {hours} 小时", "in time, hours after it was known: {hours}")
TOO_LATE = Words("超时，知悉后 {hours} 小时", "too late, hours after it was known: {hours}")
WHOM = {"authority": Words("监管机构", "authority"), "subjects": Words("个人", "people")}

REGISTER = Words("处理活动记录（第三十条）", "Records of processing (Art. 30)")
REGISTER_FACTS = Words("登记", "The register")
NOBODY_NAMED = Words(
    "登记中没有写明控制者。随 Sluice 提供的登记只描述 Sluice 自身的处理，须由运营者补全（report.register_file）。",
    "The register names no controller. The one that comes with Sluice tells only what Sluice itself does; the operator must complete it "
    "(report.register_file).",
)
VERSION, CHANGED, FINGERPRINT = Words("版本", "version"), Words("更改日期", "changed"), Words("SM3", "SM3")
CONTROLLER = Words("(a) 控制者及联系方式", "(a) controller and contact")
JOINT = Words("(a) 共同控制者", "(a) joint controllers")
REPRESENTATIVE = Words("(a) 代表", "(a) representative")
OFFICER = Words("(a) 数据保护官", "(a) data protection officer")
AS_CONTROLLER = Words("作为控制者的处理活动（第三十条第一款）", "Activities as a controller (Art. 30(1))")
AS_PROCESSOR = Words("作为处理者的处理活动（第三十条第二款）", "Activities as a processor (Art. 30(2))")
NO_PROCESSOR = Words("登记中没有作为处理者的处理活动。", "The register has no activity as a processor.")
NO_CONTROLLER = Words("登记中没有作为控制者的处理活动。", "The register has no activity as a controller.")
ACTIVITY = Words("编号 / 自何时", "id / since")
PURPOSES, PURPOSES_P = Words("(b) 目的", "(b) purposes"), Words("(b) 代行的处理", "(b) processing carried out")
ON_BEHALF = Words("(a) 所代表的控制者", "(a) on behalf of")
PEOPLE_AND_DATA = Words("(c) 人的类别 / 数据的类别", "(c) categories of people / of data")
RECIPIENTS = Words("(d) 接收方", "(d) recipients")
TRANSFERS, TRANSFERS_P = (
    Words("(e) 向第三国传输", "(e) transfers to third countries"),
    Words("(c) 向第三国传输", "(c) transfers to third countries"),
)
ERASE, SECURITY, SECURITY_P = (
    Words("(f) 删除期限", "(f) time of erasure"),
    Words("(g) 安全措施", "(g) security measures"),
    Words("(d) 安全措施", "(d) security measures"),
)
MODELS = Words("所涉模型", "models")

ASSESSMENTS = Words(
    "个人信息保护影响评估登记（《个人信息保护法》第五十五、五十六条）", "Register of impact assessments (PIPL Art. 55 and 56)"
)
ASSESSMENTS_NOTE = Words(
    "是否需要评估、评估是否充分，由人判断；评估报告和处理情况记录至少保存三年。",
    "Whether an assessment is needed and good enough is for a person to judge; reports and records are kept for at least three years.",
)
NO_ASSESSMENTS = Words("登记中没有处理活动。", "The register has no activity.")
WHY = Words("须评估的情形", "why it is needed")
TRIGGERS = {
    "sensitive": Words("敏感个人信息", "sensitive information"),
    "automated": Words("自动化决策", "automated decisions"),
    "entrusted": Words("委托处理", "entrusting"),
    "provided": Words("向他人提供", "providing to others"),
    "published": Words("公开", "publishing"),
    "exported": Words("向境外提供", "export"),
    "major": Words("其他重大影响", "another major impact"),
}
NO_TRIGGER = Words("登记未列", "none registered")
DONE, KEPT = Words("评估日期 / 报告", "assessed / report"), Words("保存至", "kept until")
NOT_DONE = Words("没有评估", "not assessed")
TOO_SHORT = Words("{until}（不足三年）", "{until} (less than three years)")
