"""The report on an export for people, line by line. Pure."""

from collections.abc import Iterator

from app.audit.verification.report import Finding, Report


def report_lines(report: Report) -> Iterator[str]:
    """The lines. Names in a file that nobody has vouched for yet do not steer a terminal: what cannot be printed is escaped."""
    return ("".join(each if each.isprintable() else f"\\u{ord(each):04x}" for each in line) for line in _lines(report))


def _lines(report: Report) -> Iterator[str]:
    yield report.verdict
    if report.log is not None:
        yield f"  log          {report.log}"
        which = f"{report.first} to {report.end - 1}" if report.end > report.first else "none"
        yield f"  entries      {which}: {report.entries} with their bodies, {report.purged} purged"
        if report.recorded_first is not None:
            yield f"  recorded     {report.recorded_first} to {report.recorded_last}"
        yield f"  checkpoints  {report.checkpoints} good"
        yield f"  anchors      {report.anchors} good"
    if report.size is not None:
        yield f"  newest       size {report.size}, root {report.root}"
    for finding in report.findings:
        yield f"{finding.verdict:9}  {_where(finding)}{finding.why}"
    for remark in report.remarks:
        yield f"remark     {remark}"


def _where(finding: Finding) -> str:
    if finding.seq is None:
        return ""
    return f"entry {finding.seq}: " if finding.last in (None, finding.seq) else f"entries {finding.seq} to {finding.last}: "
