"""`sluice audit verify`: check an exported log with nothing but the file and the root certificate."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from app.cli.answers import answering
from app.cli.audit.anchors import notes

if TYPE_CHECKING:
    from app.audit.verification.report import Report

STDIN = "-"


def verify(
    *,
    export: Annotated[str, typer.Option(metavar="FILE", help="the export, or - for standard input")],
    root: Annotated[Path, typer.Option(help="the log's root certificate, PEM or DER, from a place you trust rather than from the log")],
    anchor: Annotated[
        Path | None,
        typer.Option(
            help="checkpoints that were kept elsewhere, one after the other; only they show that entries they cover were taken off the end"
        ),
    ] = None,
    output: Annotated[Literal["text", "json"], typer.Option(help="for people or for programs")] = "text",
) -> None:
    """Check an export of the log; needs no server, no settings and no database.

    Exits with 0 where it is whole, 4 where it was tampered with, 6 where it could not be checked, 7 where records are missing:
    the log says that it lost some, or their bodies went before their time.
    """
    report = _report(export, root, anchor)
    with answering():
        _print(report, output)
    from app.audit.verification.report import EXIT_CODES

    raise typer.Exit(EXIT_CODES[report.verdict])


def _print(report: "Report", output: Literal["text", "json"]) -> None:
    if output == "json":
        import dataclasses
        import json

        typer.echo(json.dumps(dataclasses.asdict(report), ensure_ascii=False, indent=2))
    else:
        from app.audit.verification.text import report_lines

        for line in report_lines(report):
            typer.echo(line)


def _report(export: str, root: Path, anchor: Path | None) -> "Report":
    """Raises NotChecked where something that is needed is missing."""
    import contextlib
    import sys

    from app.audit.format.export_file import lines
    from app.audit.verification.report import NotChecked
    from app.audit.verification.verify import verify
    from app.cli.root_certificate import root_certificate
    from app.errors import ConfigError
    from app.signing import sm2

    try:
        sm2.self_test()
        certificate, anchors = root_certificate(root), notes(anchor) if anchor else []
        with contextlib.nullcontext(sys.stdin.buffer) if export == STDIN else Path(export).open("rb") as stream:
            return verify(lines(stream), certificate, anchors)
    except OSError as error:
        raise NotChecked(f"{error.filename or export}: {error.strerror}") from None
    except ConfigError as error:
        raise NotChecked(error.message, hint=error.advice) from None
