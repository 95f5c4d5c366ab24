"""What a person is told in words, in Chinese and English: the points of GDPR Art. 15(1) and PIPL Art. 44 to 48, and how the key stands."""

from collections.abc import Mapping

from app.reports.document import Words
from app.reports.subjects.answer import KeyState
from app.reports.subjects.person import Role

TITLE = Words("个人信息查阅报告", "What the log holds about one person")
NOTHING = Words("日志中没有关于此人的任何条目。", "Nothing is held about this person in the log.")
UNSIGNED = Words(
    "本文件未签名：没有报告密钥。内容由日志的签名检查点证明。",
    "This file is not signed, for there are no report keys. What it says is proven by the signed checkpoint of the log.",
)
SIGNED = Words(
    "SM2 兼容签名；不是经认证的商用密码产品；密钥由运营者保管。签名证明：本文件自签名起未被改动，且出自持有报告密钥者。",
    "SM2-compatible signature; not a certified commercial cryptography product (商用密码产品); key custody is the operator's. "
    "It proves that this file has not changed since whoever holds the report key signed it.",
)
CHECK = Words(
    "三条命令，任选其一进行验证（verify.sh 随 Sluice 提供）；根证书的指纹须从别处取得后比对：",
    "Check it with any one of three commands (verify.sh comes with Sluice); compare the root's fingerprint with one that came another way:",
)

POINTS: tuple[tuple[str, Words, Words], ...] = (
    (
        "purposes",
        Words("处理目的 (Art. 15(1)(a))", "Purposes (Art. 15(1)(a))"),
        Words(
            "决定是否准许对语言模型的请求，并记录谁以何目的访问敏感模型。每条条目列出其目的。",
            "To decide whether a request to a language model is admitted, and to record who had access to sensitive models for which "
            "purpose. Each entry names its own.",
        ),
    ),
    (
        "categories",
        Words("信息类别 (Art. 15(1)(b))", "Categories (Art. 15(1)(b))"),
        Words(
            "标识(以假名保存)、网络地址(以假名保存)、模型、用途、时间、决定及其理由。请求和回答的内容不在日志中。",
            "Id and network address, as pseudonyms; model, purpose, times, decisions and their reasons. "
            "What was asked of a model and what it answered is not in the log.",
        ),
    ),
    (
        "recipients",
        Words("接收者 (Art. 15(1)(c))", "Recipients (Art. 15(1)(c))"),
        Words(
            "使用本系统的网关、运营者和审计员，以编号代替姓名。日志不会自行向外传送；向第三国的传输由控制者说明。",
            "Gateways, operators and auditors of this system, as numbers in place of names. The log sends nothing by itself; "
            "of transfers to third countries the controller has to tell.",
        ),
    ),
    (
        "retention",
        Words("保存期限 (Art. 15(1)(d))", "Retention (Art. 15(1)(d))"),
        Words(
            "每条条目注明至少保存到哪一天；d365 表示自记录起 365 天。",
            "Each entry says until which day it is kept, at least; d365 is 365 days from when it was recorded.",
        ),
    ),
    (
        "rights",
        Words("权利 (Art. 15(1)(e)、(f))", "Rights (Art. 15(1)(e), (f))"),
        Words(
            "您可以要求更正、删除或限制处理，可以反对，并可向监管机构投诉。日志条目依法保存，不能更改。"
            "此版本尚不能删除：删除请求会被记录，由人答复。将来的删除是销毁每个人各自的密钥，以其加密的内容此后无法打开。",
            "You can ask for rectification, erasure or restriction, you can object, and you can complain to a supervisory authority. "
            "Entries of the log cannot be changed. Erasure is not available in this version: a request for it is recorded, and a person "
            "answers it. What erasure will destroy is the key that each person has here, and nothing that is sealed under it will open then.",
        ),
    ),
    (
        "source",
        Words("来源 (Art. 15(1)(g))", "Source (Art. 15(1)(g))"),
        Words(
            "由发出请求的网关提供，或由本系统在作出决定时产生。",
            "Given by the gateway that sent the request, or made by this system when it decided.",
        ),
    ),
    (
        "automated_decisions",
        Words("自动化决策 (Art. 15(1)(h)、Art. 22;个人信息保护法第24条)", "Automated decisions (Art. 15(1)(h), Art. 22; PIPL Art. 24)"),
        Words(
            "有。对每个请求，规则自动决定准许或拒绝：依据角色、目的、地区、时间、权限、配额和负载。条目的 reasons 列出每项理由的代码及其"
            "规则名称；waived 列出被豁免的拒绝。被拒绝的请求不会到达模型。",
            "There are. Of each request rules decide by themselves whether it is admitted: by role, purpose, region, hour, clearance, "
            "quotas and load. The reasons of an entry have the code of each ground and the name of its rule, and under waived are the refusals "
            "that were lifted. A request that is refused does not reach the model.",
        ),
    ),
)
"""Name in JSON, label, and what is said."""

ROLES: Mapping[Role, Words] = {
    "subject": Words("某租户的主体", "subject of a tenant"),
    "operator": Words("运营人员", "somebody who operates"),
    "tenant": Words("租户本人", "the tenant itself"),
}

KEYS: Mapping[KeyState, Words] = {
    "none": Words(
        "没有此人的密钥，此人的陈述中也没有以其加密而无法打开的内容。",
        "There is no key of this person, and nothing that is stated about them was sealed under one.",
    ),
    "kept": Words("此人的密钥已创建并保存：{created}。", "A key of this person is kept, made at {created}."),
    "damaged": Words(
        "此人的密钥已损坏，其加密的内容无法打开；注册库的备份中可能有完好的密钥。未被删除。",
        "The key of this person is damaged, and what is sealed under it cannot be opened; a backup of the registry may have it whole. "
        "It was not erased.",
    ),
    "renewed": Words(
        "已于 {erased} 删除：原密钥已销毁，以其加密的内容无法打开。现有密钥创建于 {created}。",
        "Erased on {erased}: the key was destroyed, and nothing that was sealed under it can be opened. A new one was made at {created}.",
    ),
    "replaced": Words(
        "原密钥已不存在，以其加密的内容无法打开；日志没有说明何时及为何。现有密钥创建于 {created}。",
        "An earlier key is gone, and nothing that was sealed under it can be opened; no entry says when and why. "
        "Another one was made at {created}.",
    ),
    "erased": Words(
        "已于 {erased} 删除：密钥已销毁，加密内容无法打开。条目的其余部分仍在。",
        "Erased on {erased}: the key was destroyed, and nothing that was sealed under it can be opened. What else the entries say remains.",
    ),
    "missing": Words(
        "密钥已不存在，加密内容无法打开；日志没有说明何时及为何。条目的其余部分仍在。",
        "The key is gone, and nothing that was sealed under it can be opened; no entry says when and why. What else the entries say remains.",
    ),
}

REGISTRY = Words(
    "注册库中与此人有关的行数；其内容也在日志条目中。",
    "Rows of the registry that are about this person; what they say stands in entries of the log, too.",
)
LEASES = Words(
    "进行中请求的租约在内存中，保存数分钟，不含个人标识。",
    "Leases of running requests are in memory for minutes and have no id of a person.",
)
SCOPE: Mapping[Role, Words] = {
    "subject": Words(
        "包含以此人假名记录的全部条目。租户本身的配额变更不在其中：那关于租户。他人所写的理由和备注不予给出：其中可能提到第三人 "
        "(Art. 15(4)),须由人判断。",
        "All entries that have this person's pseudonym. Changes of the tenant's quota are not among them: they are about the tenant. "
        "Reasons and notes that others wrote are not given: these may name third persons (Art. 15(4)), which a person has to judge.",
    ),
    "operator": Words(
        "包含此人所做的全部条目及关于其密钥的条目。涉及他人之处以编号代替，所写文字不予给出：其中可能提到他人 (Art. 15(4)),须由人判断。",
        "All entries of what this person did, and those about their key. Whom they acted on is masked. Texts that they wrote are not given: "
        "these may name others (Art. 15(4)), which a person has to judge.",
    ),
    "tenant": Words(
        "包含关于租户本身的全部条目。关于其主体的条目属于各主体，不在其中。运营者所写文字不予给出 (Art. 15(4))。",
        "All entries about the tenant as such. Those about its subjects are theirs, and not among them. "
        "Texts that operators wrote are not given (Art. 15(4)).",
    ),
}
PROOF = Words(
    "每条条目都有编号和包含证明，指向下列已签名的检查点；证明在 JSON 文件中，本报告生成时均已核对。叶子哈希包含条目正文的哈希。",
    "Each entry has its number and a proof that leads to the signed checkpoint below; the proofs are in the JSON file, and each was checked "
    "when this report was made. A leaf has the hash of the entry's body.",
)
