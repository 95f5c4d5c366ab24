"""The root under which a log was begun, and which it has for ever: verifiers are given that one certificate.

When down: psycopg.Error; nothing is decided without an answer.
"""

from pathlib import Path

from app.audit.sequencing.queries import QUERIES
from app.audit.sequencing.session import Connection
from app.signing.certificates import Certificate
from app.signing.key_files import refuse_another_root


async def root_of(connection: Connection) -> Certificate | None:
    """The root of the log; None where it has not begun. Raises CertificateRefused where what stands there is none."""
    row = await (await connection.execute(QUERIES["root"])).fetchone()
    return Certificate.load(row[0]) if row else None


async def check_root(connection: Connection, folder: Path, here: Certificate | None) -> None:
    """Raise ConfigError where the log was begun under another root than that of the keys in `folder`, `here`, which is None without any."""
    if of_log := await root_of(connection):
        refuse_another_root(folder, here, of_log)
