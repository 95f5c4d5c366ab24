"""The command line: one file per noun, each imported only when its command runs, so that --help stays fast.

Exit codes: 0 fine, 1 our fault, 2 usage, 3 refused, 4 verification failed, 5 policy or tests failed, 6 a dependency is down, 7 gap.
"""

import sys

import typer

from app.cli import audit, engine, key, policy, report, telemetry
from app.cli.arguments import advice_of, refuse_empty
from app.cli.doctor import doctor
from app.cli.serve import serve
from app.errors import SluiceError

app = typer.Typer(
    name="sluice", no_args_is_help=True, pretty_exceptions_enable=False, help="Admission decisions for GPU-served language models."
)


app.command()(serve)
app.command()(doctor)
_NOUNS = (("policy", policy), ("key", key), ("audit", audit), ("report", report), ("telemetry", telemetry), ("engine", engine))
for _noun, _commands in _NOUNS:
    app.add_typer(_commands.app, name=_noun)


def main() -> None:
    """Run the command line; a SluiceError prints its message and hint to stderr and exits with its code."""
    try:
        refuse_empty(sys.argv[1:])
        app()
    except SluiceError as error:
        print(f"sluice: {error.message}\n  {advice_of(error)}", file=sys.stderr)
        sys.exit(error.exit_code)
