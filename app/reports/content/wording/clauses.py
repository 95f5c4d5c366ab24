"""The page of verdicts."""

from app.reports.document import Words

TITLE = Words("条款与结论", "Clauses and verdicts")
SCOPE = Words(
    "评估对象是 Sluice（模型调用的准入控制）及其审计日志，依据仅为当日日志。软件无法判断或不知道的，一律为人工评估。标明待核实的条款，其文字未经核对。",
    "What is judged is Sluice, the admission control of model calls, and its log, by the log of the day alone. What software cannot judge or "
    "does not know is for a person. Where a clause says `to check`, nobody has compared its text with the source.",
)
QUERIES = Words(
    "证据前方括号中的数字是“指标的计数方法”一表的序号。表中的 kind=… 是 GET /audit/entries 的参数，from 与 to 取封面所列的当日起止；outcome 由阅读者自行对照。",
    "The number in brackets before evidence is that of the figure in the table `How the figures were counted`. Where that says `kind=…`, it "
    "is a parameter of GET /audit/entries, with from and to of the day as on the cover; `outcome` is for the reader to look at.",
)
SUMMARY = Words("结论汇总", "Verdicts in numbers")
EACH = Words("逐条结论", "Clause by clause")
NONE = Words("没有配置任何条款。", "No clauses are configured.")
FIGURES = Words("指标的计数方法", "How the figures were counted")
NO_FIGURES = Words("没有条款以软件指标为证据。", "No clause has a figure as evidence.")
NUMBER, FIGURE, VALUE, QUERY = Words("序号", "no."), Words("指标", "figure"), Words("数值", "value"), Words("计数方法", "what was counted")
CLAUSE = Words("条款", "clause")
REQUIREMENT = Words("要求（转述）", "requirement, paraphrased")
EVIDENCE = Words("证据", "evidence")
VERDICT = Words("结论", "verdict")
REMARK = Words("理由与备注", "reason and remark")
TO_CHECK = Words("待核实", "to check")
UNKNOWN = Words("未知", "unknown")
ENTRIES = Words("条目", "entries")
NO_MEASURE = Words("无软件证据", "no evidence from software")
