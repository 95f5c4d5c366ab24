"""Headings, and what stands beside a figure, in a report for one person."""

from app.reports.document import Column, Words

ABOUT = Words("关于", "About")
ID = Words("标识", "Id")
TENANT = Words("租户", "Tenant")
PSEUDONYM = Words("日志中的假名", "Pseudonym in the log")
REQUEST = Words("请求", "Asked for")
MADE = Words("生成时间", "Made")
RESPONSIBLE = Words("责任单位", "Responsible")
SYSTEM = Words("系统", "System")
NOT_NAMED = Words("未填写", "not named")
ENTRIES = Words("条目数", "Entries")
CHECKPOINT = Words("检查点", "Checkpoint")
ROOT = Words("根证书的 SM3 指纹", "SM3 fingerprint of the root certificate")

TOLD = Words("法律要求告知的内容", "What the law has you told")
SUMMARY = Words("概要", "In short")
ALL_ENTRIES = Words("全部条目", "All entries")
OUTSIDE = Words("日志之外", "Outside of the log")
PROOF = Words("证明", "Proof")

SUMMARY_COLUMNS = (Column(Words("事件", "Event"), 3), Column(Words("结果", "Outcome"), 2), Column(ENTRIES, 1, "right"))
ENTRY_COLUMNS = (
    Column(Words("编号", "Number"), 9, "right", mono=True),
    Column(Words("时间 (UTC)", "Time (UTC)"), 12, mono=True),
    Column(Words("事件、结果", "Event, outcome"), 19),
    Column(Words("模型、用途", "Model, purpose"), 21),
    Column(Words("理由及其他", "Reasons and more"), 36),
    Column(Words("经办", "By"), 11),
    Column(Words("至少保存至", "Kept until"), 12, mono=True),
)
