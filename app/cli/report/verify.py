"""`sluice report verify`: check a report with nothing but its files and the root certificate."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from app.cli.answers import answering

if TYPE_CHECKING:
    from app.reports.checking.result import Result


def verify(
    *,
    file: Annotated[
        Path, typer.Argument(help="a signed PDF, a file with its signature FILE.p7s beside it, a manifest.json, or a night's folder")
    ],
    root: Annotated[Path, typer.Option(help="the root certificate of reports, PEM or DER, from a place you trust, not from the folder")],
    output: Annotated[Literal["text", "json"], typer.Option(help="for people or for programs")] = "text",
) -> None:
    """Check a report; needs no server, no settings and no database.

    Exits with 0 where it is as it was signed, 4 where it is not, 6 where it could not be checked. That it is valid says that a signer
    of your root signed these bytes, not that what they say is true, nor when that was: the time is the signer's own.
    """
    from app.reports.checking.result import EXIT_CODES

    result = _result(file, root)
    with answering():
        _print(result, output)
    raise typer.Exit(EXIT_CODES[result.verdict])


def _print(result: "Result", output: Literal["text", "json"]) -> None:
    if output == "json":
        import dataclasses
        import json

        typer.echo(json.dumps(dataclasses.asdict(result), ensure_ascii=False, indent=2))
    else:
        from app.reports.checking.text import lines

        for line in lines(result):
            typer.echo(line)


def _result(file: Path, root: Path) -> "Result":
    """Raises NotChecked where the root certificate, or SM2 on this machine, is missing."""
    from app.audit.verification.report import NotChecked
    from app.cli.root_certificate import root_certificate
    from app.errors import ConfigError
    from app.reports.checking.check import check
    from app.signing import sm2

    try:
        sm2.self_test()
        return check(file, root_certificate(root))
    except ConfigError as error:
        raise NotChecked(error.message, hint=error.advice) from None
