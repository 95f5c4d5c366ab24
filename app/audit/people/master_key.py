"""The secrets under which people stand in the log, each in a file of its own: made by the first start, needed for ever.

When down: a file that cannot be read or made stops the start with ConfigError.
"""

import secrets
from pathlib import Path

from app import private_files
from app.errors import ConfigError

MASTER_BYTES = 32


def master_key(path: Path) -> bytes:
    """The key in the file at `path`, which is made (0600) where there is none. Raises ConfigError."""
    key = private_files.write_once(path, secrets.token_bytes(MASTER_BYTES))
    if len(key) != MASTER_BYTES:
        raise ConfigError(
            f"{path}: not a key of {MASTER_BYTES} bytes", hint="Restore the file; a new one would break the link to old entries."
        )
    return key
