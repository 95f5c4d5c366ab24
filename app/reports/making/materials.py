"""What reports are made with beside the log: clauses, register, font, keys, the script for whoever checks them. Read once for a run.

When down: whatever is missing or wrong is a ConfigError before anything is made; while the log cannot be asked whose keys sign, it is
DependencyDown.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy.ext.asyncio import AsyncEngine

from app.catalog.models import load_models
from app.clock import Clock
from app.errors import ConfigError
from app.reports.clauses.loading import Clauses, load_clauses
from app.reports.clauses.measures import MEASURES
from app.reports.content.register import Register, load_register
from app.reports.content.texts import template_texts
from app.reports.evidence.facts import Declared
from app.reports.layout.font import Font, check_template, font_file
from app.reports.making.log_root import given_root
from app.reports.making.report_keys import open_keys
from app.reports.sealing.sealer import Sealer
from app.setting_sections import ReportSettings
from app.settings import Settings
from app.signing import sm2
from app.signing.certificates import Certificate
from app.signing.keys import KeyFolder, keys_folder
from app.transaction import Transactions

VERIFIER = Path(__file__).resolve().parents[3] / "verifier" / "report" / "verify.sh"


@dataclass(frozen=True, slots=True)
class Materials:
    """All of it, read."""

    settings: ReportSettings
    clauses: Clauses
    register: Register
    font: Font
    declared: Declared
    models: str
    """SM3 in hex of models.yaml, which `declared` is read from."""
    keys: KeyFolder
    """Of the reports, open."""
    log_root: Certificate | None
    """The root that vouches for the log, by the settings or from the folder of its keys; None where both are elsewhere."""
    script: bytes
    """verify.sh."""

    def sealer(self) -> Sealer:
        """What signs one night: what an authority did not give for another one is not told of this one. Raises ConfigError."""
        return Sealer.of(self.settings, self.keys)


async def load_materials(settings: Settings, var: Path, clock: Clock, transactions: Transactions, writing: AsyncEngine) -> Materials:
    """As the settings have it; the first report keys of a log are made, as open_keys has it. Raises ConfigError, DependencyDown.

    Opens private keys: the caller has forbidden dumps of its memory.
    """
    sm2.self_test()
    report = settings.report
    models = load_models(Path(settings.models))
    sensitive = {name: spec.sensitive for name, spec in models.items() if spec.sensitive}
    clauses = load_clauses(MEASURES, Path(report.clauses) if report.clauses else None)
    register = load_register(Path(report.register_file) if report.register_file else None)
    font = Font(font_file(settings.font))
    check_template(font, template_texts(clauses, register))
    keys = await open_keys(settings, var, clock, transactions, writing)
    materials = Materials(
        settings=report,
        clauses=clauses,
        register=register,
        font=font,
        declared=Declared(frozenset(sensitive), frozenset(name for name, spec in sensitive.items() if spec.approval)),
        models=_sm3_of(Path(settings.models)),
        keys=keys,
        log_root=given_root(report.log_root, keys_folder(settings, var)),
        script=_script(),
    )
    materials.sealer()  # what it would refuse is told before anything is made
    return materials


def _sm3_of(file: Path) -> str:
    return hashlib.new("sm3", file.read_bytes()).hexdigest()


def _script() -> bytes:
    try:
        return VERIFIER.read_bytes()
    except OSError as error:
        raise ConfigError(
            f"{VERIFIER}: {error.strerror}", hint="Restore it from the repository: it goes into each night's folder."
        ) from None
