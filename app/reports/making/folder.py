"""Fills a night's folder: both reports, the tables, what signs them, the manifest, and what is needed to check all of it."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import structlog

from app import __version__
from app.audit.format.export_file import Header
from app.instants import rfc3339
from app.reports.clauses.clause import Judged
from app.reports.clauses.judging import judge_all, tally
from app.reports.clauses.measures import measure
from app.reports.content.cover import Imprint
from app.reports.content.csv_files import write_decisions
from app.reports.content.gdpr import gdpr
from app.reports.content.mlps import mlps
from app.reports.document import Document
from app.reports.evidence.accesses import ACCESS, ASKED
from app.reports.evidence.facts import Evidence
from app.reports.layout.pdf import render
from app.reports.making.draft import Draft
from app.reports.making.log_root import SAID
from app.reports.making.materials import Materials
from app.reports.making.progress import Progress
from app.reports.manifest import (
    DECISIONS,
    ENTRIES,
    GDPR,
    LOG,
    MANIFEST,
    MLPS,
    OLDER,
    ROOT,
    SCRIPT,
    SIGNATURE_SUFFIX,
    TIME_STAMP_SUFFIX,
    FileLine,
    LogLine,
    Manifest,
)
from app.reports.sealing.sealer import Sealed, Sealer

PIECE_BYTES = 1 << 20

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Filling:
    """One folder that is being filled, as of the instant `at`."""

    draft: Draft
    materials: Materials
    sealer: Sealer
    at: datetime
    operator: str
    progress: Progress

    def fill(self, evidence: Evidence, header: Header, entry_rows: int) -> Manifest:
        """Write everything but log.jsonl and entries.csv, which are there. Blocking. Raises FontRefused, NotSealed, ShelfUnwritable."""
        self.progress.stage(evidence.night, "write")
        with self.draft.writing(DECISIONS) as file:
            decision_rows = write_decisions(file, evidence)
        imprint = self._imprint(evidence)
        judged = self._judged(evidence)
        register = self.materials.register
        missing = self._pdf(MLPS, mlps(evidence, judged["mlps"], imprint))
        missing += self._pdf(GDPR, gdpr(evidence, judged["gdpr"], register, imprint))
        self.progress.stage(evidence.night, "sign")
        for name in (DECISIONS, ENTRIES):
            self._beside(name)
        if evidence.older:
            self.draft.write(OLDER, "".join(proof for _, proof in evidence.older).encode())
        counts = {"decisions_rows": decision_rows, "entries_rows": entry_rows, "missing_characters": missing}
        manifest = self._manifest(evidence, header, imprint, judged, counts)
        self.draft.write(MANIFEST, manifest.text())
        self._beside(MANIFEST)
        for trouble in self.sealer.troubles:
            if trouble not in manifest.versions["left_out"]:  # its text is signed, and cannot say it
                log.warning("report.manifest_not_stamped", report=self.draft.report, problem=trouble)
        self.draft.write(ROOT, self.materials.keys.root.pem.encode())
        self.draft.write(SCRIPT, self.materials.script)
        self.draft.settle()
        return manifest

    def _imprint(self, evidence: Evidence) -> Imprint:
        materials, settings = self.materials, self.materials.settings
        versions = {
            "sluice": __version__,
            "policy": ", ".join(revisions_of(evidence)),
            "clauses": materials.clauses.sm3,
            "register": materials.register.sm3,
            "font": f"{materials.font.title}, {materials.font.sha256}",
        }
        return Imprint(
            report=self.draft.report,
            made=rfc3339(self.at),
            made_by=self.operator,
            root=materials.keys.root.fingerprint.hex(),
            organization=settings.organization,
            system=settings.system,
            pades=bool(settings.pades_key and settings.pades_certificates),
            timestamp=bool(settings.timestamp_url),
            versions={name: version for name, version in versions.items() if version},
        )

    def _judged(self, evidence: Evidence) -> dict[str, tuple[Judged, ...]]:
        measures, clauses = measure(evidence), self.materials.clauses
        return {"mlps": judge_all(clauses.mlps, measures), "gdpr": judge_all(clauses.gdpr, measures)}

    def _pdf(self, name: str, document: Document) -> int:
        """Write and sign it. Returns how many characters print as [U+XXXX]."""
        rendered = render(document, self.materials.font)
        self._sealed(name, self.sealer.pdf(name, rendered.pdf, self.at), "")
        return sum(rendered.missing.values())

    def _beside(self, name: str) -> None:
        self._sealed(name, self.sealer.beside(self.draft.path / name, self.at), SIGNATURE_SUFFIX)

    def _sealed(self, name: str, sealed: Sealed, suffix: str) -> None:
        self.draft.write(name + suffix, sealed.content)
        if sealed.time_stamp:
            self.draft.write(name + TIME_STAMP_SUFFIX, sealed.time_stamp)

    def _manifest(
        self, evidence: Evidence, header: Header, imprint: Imprint, judged: Mapping[str, Iterable[Judged]], counted: Mapping[str, int]
    ) -> Manifest:
        night, report = evidence.night, evidence.integrity.report
        line = LogLine(
            origin=header.log,
            first=header.first,
            end=header.end,
            size=header.size,
            root=report.root or "",
            note=header.note,
            certificate=evidence.integrity.root,
            verdict=report.verdict,
        )
        return Manifest(
            report=imprint.report,
            day=night.day.isoformat(),
            zone=night.zone,
            begin=rfc3339(night.begin),
            end=rfc3339(night.end),
            made=imprint.made,
            made_by=imprint.made_by,
            files=[
                file_line(self.draft.path / name) for name in (MLPS, GDPR, DECISIONS, ENTRIES, LOG, *([OLDER] if evidence.older else []))
            ],
            log=line,
            counts={**counts_of(evidence), **counted},
            verdicts={name: tally(each) for name, each in judged.items()},
            versions={
                **imprint.versions,
                "left_out": list(self.sealer.troubles),
                SAID: evidence.integrity.root_from,
                "models": self.materials.models,
            },
        )


def counts_of(evidence: Evidence) -> dict[str, int]:
    """What the manifest counts of a night."""
    decisions = sum(one.count for one in evidence.decisions)
    allowed = sum(one.count for one in evidence.decisions if one.outcome == "allow")
    accesses = sum(one.count for one in evidence.kinds if one.kind == ACCESS and one.outcome in ASKED)
    return {
        "entries": evidence.entries,
        "decisions": decisions,
        "refused": decisions - allowed,
        "sensitive_accesses": accesses,
    }


def revisions_of(evidence: Evidence) -> list[str]:
    """Revisions of the rules that were in force when the day began, and that its entries name as in force, in order of their names."""
    kinds = ("policy.activated", "sensitive.access", "policy.refusal", "waiver.used")
    named = {str(entry.body.get("policy_revision") or "") for kind in kinds for entry in evidence.of(kind).entries}
    before = {str(entry.body.get("previous_revision") or "") for entry in evidence.of("policy.activated").entries}
    return sorted((named | before | {evidence.rules or ""}) - {""})


def file_line(path: Path) -> FileLine:
    """Name, length and digests of the file at `path`."""
    sm3, sha256, size = hashlib.new("sm3"), hashlib.sha256(), 0
    with path.open("rb") as file:
        while piece := file.read(PIECE_BYTES):
            sm3.update(piece)
            sha256.update(piece)
            size += len(piece)
    return FileLine(path.name, size, sm3.hexdigest(), sha256.hexdigest())
