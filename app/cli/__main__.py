"""`python -m app.cli`: how children of serve are started, whatever is on PATH."""

from app.cli import main

main()
