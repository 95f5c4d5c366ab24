"""`sluice report`: the nightly reports, what people ask for about themselves, and breaches of personal data."""

import typer

from app.cli.report import breach, keys, request
from app.cli.report.list import list_
from app.cli.report.nightly import nightly
from app.cli.report.subject import subject
from app.cli.report.verify import verify

app = typer.Typer(help="Compliance reports: make them, check them, and what people ask for about themselves.", no_args_is_help=True)

app.command()(nightly)
app.command("list")(list_)
app.command()(subject)
app.command()(verify)
app.add_typer(keys.app, name="keys")
app.add_typer(request.app, name="request")
app.add_typer(breach.app, name="breach")
