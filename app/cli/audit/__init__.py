"""`sluice audit`: run the log, read it out, check it, keep its keys."""

import typer

from app.cli.audit import keys
from app.cli.audit.export import export, proof
from app.cli.audit.run import run
from app.cli.audit.verify import verify

app = typer.Typer(help="The log: run it, export it, verify it, keep its keys.", no_args_is_help=True)

app.command()(run)
app.command()(export)
app.command()(proof)
app.command()(verify)
app.add_typer(keys.app, name="keys")
