"""Markdown as the reference uses it: a page with a note on its origin, and tables."""

from collections.abc import Iterable, Sequence

ORIGIN = "<!-- Written by `make reference` from the code. Edit the code, not this file. -->"


def page(title: str, *parts: str) -> str:
    """One file: title, origin, then the parts with a blank line between them."""
    return "\n\n".join((f"# {title}", ORIGIN, *(part for part in parts if part))) + "\n"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; line breaks and bars inside cells are made harmless."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"|{'|'.join(map(_cell, line))}|" for line in lines)


def code(text: object) -> str:
    """`text` as code; nothing for nothing."""
    return f"`{text}`" if text not in ("", None) else ""


def _cell(text: str) -> str:
    return f" {' '.join(text.split())} ".replace("|", "\\|").replace("  ", " ")
