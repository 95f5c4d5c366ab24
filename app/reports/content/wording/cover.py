"""The cover: what the report is, what its signature proves and what not, how to check it."""

from app.reports.document import Words

SYSTEM = Words("责任单位与系统", "responsible, system")
LEVEL_THREE = Words("保护等级第三级", "protection level 3")
REPORT = Words("报告编号", "report")
DAY = Words("日期与期间（UTC，不含终点）", "day, period (UTC, end not included)")
HOURS = Words("当日 {hours} 小时：该时区的时钟当日有调整。", "{hours} hours: the clocks of the zone were changed on this day.")
ENTRIES = Words("当日条目 / 导出的条目号", "entries / numbers exported")
DECISIONS = Words("决定：允许 / 未允许", "decisions: allowed / not allowed")
ACCESSES = Words("访问敏感模型 / 其中拒绝", "sensitive accesses / refused")
CHECKPOINT = Words("日志校验；检查点条数、树根", "log: verdict; checkpoint")
LOG_ROOT = Words("日志根证书 SM3", "log root certificate, SM3")
MADE = Words("生成时间 / 生成者", "made at / by")
VERSIONS = {
    "sluice": Words("Sluice 版本", "Sluice"),
    "policy": Words("当期规则版本", "rules in force"),
    "clauses": Words("条款文件 SM3", "clauses, SM3"),
    "register": Words("登记文件 SM3", "register, SM3"),
    "font": Words("字体、SHA-256", "font, SHA-256"),
}
NOTHING_HAPPENED = Words(
    "当日日志中没有任何条目。本报告如实记载：没有决定、没有访问、没有变更，各项计数为零。",
    "The log has no entry of this day. The report says so: no decisions, no accesses, no changes, and all counts are zero.",
)
LOG_BEGINS = Words(
    "日志自当日开始（条目 0）。此前发生的事项不在任何条目中，本报告对其不作任何陈述。",
    "The log begins on this day, with entry 0. What happened before is in no entry, and this report says nothing of it.",
)

VERDICTS_TITLE = Words("条款", "clauses")
TABLES_TITLE = Words("表", "table")
ROWS_HERE = Words("本报告行数", "rows here")
ROWS_ALL = Words("总行数", "rows in all")

PROVES = Words(
    "签名证明：自签名以来本文件没有任何改动，且由持有该报告密钥者签署。当日条目由同一文件夹中的 log.jsonl 逐条证明；"
    "更早的条目由 older.txt 逐条证明属于同一检查点。",
    "The signature proves that nothing in this file has changed since it was signed, and that whoever holds the report key signed it. "
    "log.jsonl in the same folder proves each entry of the day; older.txt has of each older one the proof that it belongs to the same "
    "checkpoint.",
)
PROVES_NOT = Words(
    "签名不证明：日志以外发生的事、条款结论的法律效力、签名者的身份（除非您以别的途径取得并核对根证书）。"
    "普通 PDF 阅读器可能不认识 SM2，不显示或显示为无效签名。",
    "It does not prove what happened outside of the log, that a verdict holds in law, or who signed, unless the root certificate reached "
    "you another way. Ordinary PDF readers may not know SM2, and show the signature as unknown or invalid.",
)
TIME_BY_CLOCK = Words("签名时间是签名机器的时钟。", "The time of signing is that of the signer's clock.")
TIME_BY_TOKEN = Words(
    "已请求 RFC 3161 时间戳；取得时在同一文件夹的 .tsr 文件中。",
    "An RFC 3161 time stamp was asked for; where one was given, it lies beside this file as .tsr.",
)
ALSO_PADES = Words(
    "另设有供普通阅读器使用的 ECDSA（PAdES）签名；如未能加上，manifest.json 有记载。",
    "An ECDSA (PAdES) signature for ordinary readers is set up, too; manifest.json says so where it was left out.",
)
SM2 = Words(
    "与 SM2 兼容的签名；不是经认证的商用密码产品；密钥由运营者保管。",
    "SM2-compatible signature; not a certified commercial cryptography product (商用密码产品); key custody is the operator's.",
)
HOW_TO_CHECK = Words("校验方法，任选其一：", "To check it, any one of these:")
COMPARE = Words(
    "ROOT.pem 指您以别的途径得到的报告根证书，其 SM3 指纹应为上列“报告根证书 SM3”。同一文件夹中的 root.pem 随报告而来，本身不能证明什么："
    "若只有它，先将其指纹与以别的途径得到的指纹核对。",
    "ROOT.pem is the report root certificate that you were given another way; its SM3 fingerprint is the one above. The root.pem in this "
    "folder came with the report and proves nothing by itself: where you have no other, compare its fingerprint first with one that reached "
    "you another way.",
)
ROOT = Words("报告根证书 SM3", "report root certificate, SM3")
COMMANDS = (
    "sluice report verify {file} --root ROOT.pem",
    "sluice-verify --report {file} --root ROOT.pem",
    "sh verify.sh {file} ROOT.pem",
)
NIGHT_HAS = Words(
    "同一文件夹中的 manifest.json 列出当夜全部文件及其 SM3 与 SHA-256，并另有签名。",
    "manifest.json in the same folder lists all files of the night with their SM3 and SHA-256, and is signed itself.",
)
