"""`--anchor FILE` of `sluice audit`: checkpoints that were kept elsewhere, one after the other."""

from pathlib import Path


def notes(path: Path) -> list[str]:
    """The notes in a file, at least one. Raises NotChecked."""
    from app.audit.format.checkpoint import NoteRefused, split_notes
    from app.audit.verification.report import NotChecked

    hint = "Keep checkpoints as text: GET /audit/checkpoint with Accept: text/plain. Lines that begin with # are yours."
    try:
        return split_notes(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise NotChecked(f"--anchor: {path}: {error.strerror}", hint=hint) from None
    except UnicodeDecodeError:
        raise NotChecked(f"--anchor: {path}: no text of checkpoints", hint=hint) from None
    except NoteRefused as error:
        raise NotChecked(f"--anchor: {path}: {error.message}", hint=hint) from None
