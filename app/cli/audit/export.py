"""`sluice audit export` and `sluice audit proof`: take out of the log what is checked elsewhere."""

import contextlib
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO, TypeVar

import typer

from app.cli.audit.anchors import notes
from app.cli.operator import operator
from app.cli.options import Config, Overrides, Var, quiet_settings_of

if TYPE_CHECKING:
    from app.audit.format.export_file import Header
    from app.audit.reading.export import Wanted
    from app.audit.reading.log import Log

T = TypeVar("T")
STDOUT = Path("-")


def export(
    *,
    out: Annotated[Path, typer.Option(metavar="FILE", help="where the file goes, which is there when it is whole; - is standard output")],
    begin: Annotated[str | None, typer.Option("--from", help="recorded then or later, RFC 3339")] = None,
    end: Annotated[str | None, typer.Option("--to", help="recorded before, RFC 3339")] = None,
    anchor: Annotated[
        Path | None, typer.Option(metavar="FILE", help="checkpoints that were kept elsewhere; the file will have what proves them")
    ] = None,
    var: Var = Path("var"),
    config: Config = None,
    overrides: Overrides = None,
) -> None:
    """Write the entries of a period, or all, into one file that `sluice audit verify` checks without the log.

    It reaches to the newest signed checkpoint. The log records who exported what.
    """
    from app.audit.reading.export import Wanted
    from app.instants import Period

    wanted = Wanted(Period.parse(begin, end, prefix="--"), _sizes(anchor) if anchor else ())
    with _writing(out) as file:
        header = _with_log(lambda log: _write(log, wanted, file.write), var, config, overrides)
    typer.echo(f"{out}: entries {header.first} to {header.end - 1} of {header.size} under the newest checkpoint", err=True)


def proof(
    seq: Annotated[int, typer.Argument(min=0, help="number of the entry, from 0")],
    *,
    out: Annotated[Path, typer.Option(metavar="FILE", help="where the file goes; - is standard output")],
    size: Annotated[int | None, typer.Option(min=1, help="of an older checkpoint")] = None,
    var: Var = Path("var"),
    config: Config = None,
    overrides: Overrides = None,
) -> None:
    """Write the proof that an entry is under a signed checkpoint, as a text that `verifier/verify.sh` checks with openssl alone.

    The log records who read which entry.
    """
    with _writing(out) as file:
        found = _with_log(lambda log: log.inclusion(seq, size, operator=operator()), var, config, overrides)
        file.write(found.file.encode())
    typer.echo(f"{out}: entry {seq} under the checkpoint of size {found.checkpoint.size}", err=True)


async def _write(log: "Log", wanted: "Wanted", write: Callable[[bytes], object]) -> "Header":
    """Write the file's pieces as they come, and show how far it is where somebody looks on."""
    import sys

    exported = await log.export(wanted, operator=operator())
    header, done = exported.header, 0
    with typer.progressbar(length=header.end - header.first, label="entries", file=sys.stderr, hidden=not sys.stderr.isatty()) as bar:
        async with contextlib.aclosing(exported.lines) as pieces:
            async for piece in pieces:
                write(piece.lines)
                bar.update(piece.entries - done)
                done = piece.entries
    return header


@contextlib.contextmanager
def _writing(out: Path) -> Iterator[BinaryIO]:
    """The file `out`, which takes its name when the block ends well, or standard output. Raises ConfigError."""
    import sys

    from app import private_files

    if out == STDOUT:
        # A buffer of its own: what a closed pipe left in that of the interpreter would fail once more at its end.
        with (
            private_files.refused_as("--out -", hint="What reads it has to read to the end."),
            open(sys.stdout.fileno(), "wb", closefd=False) as file,
        ):
            yield file
    else:
        _check_out(out)
        with private_files.replacing(out) as file:
            yield file


def _check_out(out: Path) -> None:
    """Raise ConfigError where the folder is not there, or no plain file would be replaced: a device such as /dev/stdout would be gone."""
    from app.errors import ConfigError

    if out.is_symlink() or (out.exists() and not out.is_file()):
        raise ConfigError(
            f"--out: {out} is there and is no plain file", hint="Name a new file: it appears when it is whole; or - for standard output."
        )
    if not out.parent.is_dir():
        raise ConfigError(f"--out: there is no folder {out.parent}", hint="Make the folder first, or correct its name.")


def _sizes(anchor: Path) -> tuple[int, ...]:
    """The sizes of the checkpoints in a file. Raises NotChecked, NoteRefused."""
    from app.audit.format.checkpoint import parse_note

    return tuple(parse_note(note)[0].size for note in notes(anchor))


def _with_log(work: "Callable[[Log], Awaitable[T]]", var: Path, config: Path | None, overrides: list[str] | None) -> T:
    """The result of `work` on the log of the database that the settings name. Raises what it raises, and DatabaseDown."""
    import asyncio

    from app.access import urls_beside_serve
    from app.audit.intake.gaps import Gaps
    from app.audit.intake.intake import Intake
    from app.audit.reading.log import Log
    from app.clock import SystemClock
    from app.database import create_engine
    from app.observability.metrics import Metrics

    settings = quiet_settings_of(config, var, overrides, "audit")
    urls = urls_beside_serve(settings, var)

    async def run() -> T:
        reading, writing = (create_engine(url, settings.database) for url in (urls.log, urls.intake))
        clock, metrics, timeout_ms = SystemClock(), Metrics(), settings.database.timeout_ms
        intake = Intake(writing, metrics, Gaps(clock), timeout_ms=timeout_ms)
        try:
            return await work(Log(reading, intake, clock, metrics, timeout_ms=timeout_ms))
        finally:
            await reading.dispose()
            await writing.dispose()

    return asyncio.run(run())
