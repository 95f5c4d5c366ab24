"""Answers of commands that check something: whoever reads their exit status must not be misled by an output that could not be written."""

import contextlib
from collections.abc import Iterator


@contextlib.contextmanager
def answering() -> Iterator[None]:
    """Print in the block: a reader that closed the pipe has read all that was wanted; a full disk raises NotChecked."""
    try:
        yield
    except OSError as error:
        import os
        import sys

        from app.audit.verification.report import NotChecked

        # What is still buffered would fail once more when the interpreter ends, with an exit status of its own.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):  # such as head
            raise NotChecked(f"the report could not be written: {error.strerror}", hint="Is the disk full?") from None
