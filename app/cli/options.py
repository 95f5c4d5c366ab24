"""Options that several commands have, declared once."""

from typing import Annotated

import typer

Overrides = Annotated[list[str] | None, typer.Option("--set", help="section.name=value, over file and environment")]
