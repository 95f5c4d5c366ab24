"""Policy folders of any size: the rules that come with Sluice, and made ones of the kinds that operators write."""

import shutil
from pathlib import Path

SHIPPED = Path(__file__).resolve().parents[1] / "rego"

_METADATA = """# METADATA
# title: Made rule {number}
# description: One of many, to measure what a number of rules costs.
# custom:
#   reads: [{reads}]
package sluice.rules.made_{number}

"""
_LIMIT = """limit contains {{"bucket": "tenant_model", "dimension": "tpm", "limit": input.tenant.tpm - {number}}} if {{
\tinput.tenant.sla_class in {{"payment", "query"}}
\tinput.model.cost < {number} + 10
}}
"""
_SCALE = """scale contains {{"dimension": "tpm", "factor": 0.99}} if {{
\tinput.readings.live > 0
\tinput.readings.kv_mean > 0.7 + ({number} * 0.001)
}}
"""
_DENY = """deny contains {{"code": "made_{number}", "message": "not at this priority", "status": 403}} if {{
\tinput.request.priority == "P2"
\tinput.request.action == "made_{number}"
}}
"""
KINDS = (("tenant, model", _LIMIT), ("readings", _SCALE), ("request", _DENY))
"""What a made rule reads, and its text; by turns."""


def folder_of(count: int, folder: Path) -> Path:
    """A policy folder of `count` rules, the shipped ones among them, in `folder`."""
    shutil.copytree(SHIPPED, folder)
    made = count - len(list((folder / "rules").iterdir()))
    for number in range(made):
        reads, text = KINDS[number % len(KINDS)]
        rule = folder / "rules" / f"made_{number}"
        rule.mkdir()
        (rule / f"made_{number}.rego").write_text((_METADATA + text).format(number=number, reads=reads), "utf-8")
    return folder


def touch(folder: Path, stamp: float) -> None:
    """Change one rule without changing what it says: a new text is a new revision."""
    rule = folder / "rules" / "pressure" / "pressure.rego"
    text = rule.read_text("utf-8").partition("\n# changed")[0].rstrip("\n")
    rule.write_text(f"{text}\n# changed {stamp}\n", "utf-8")
