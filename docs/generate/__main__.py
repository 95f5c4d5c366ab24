"""Write docs/reference/*.md."""

from docs.generate.reference import FOLDER, pages

for name, text in pages().items():
    (FOLDER / name).write_text(text, "utf-8")
