"""The passphrase of a folder of keys: from a file outside of what serve keeps, or from a descriptor, never from the settings themselves.

A copy of --var, such as a backup, then holds the encrypted keys without what opens them.
When down: a passphrase that cannot be read, or that others could read, is a ConfigError; no key is opened or made without it.
"""

import os
import secrets
from pathlib import Path

import structlog

from app import private_files
from app.access import secrets_folder
from app.errors import ConfigError
from app.setting_sections import EMBEDDED
from app.settings import Settings
from app.signing.key_files import newest_signer
from app.signing.keys import keys_folder, section_of
from app.signing.uses import LOG, KeyUse

MIN_BYTES = 12  # each guess costs 600 000 hashes; below this length that is not enough
MAX_BYTES = 1024  # a wrong file, not a passphrase
RANDOM_BYTES = 32
BACK = "Put the file back from your backup."

log = structlog.get_logger()


def passphrase_of(settings: Settings, var: Path, use: KeyUse = LOG) -> bytes:
    """The passphrase that the settings name; with an embedded database and no setting, one that is made for trying. Raises ConfigError.

    A descriptor is read to its end and closed, so it can be asked once.
    """
    kind, _, number = section_of(settings, use).passphrase.partition(":")
    if kind == "fd":
        return _checked(_from_descriptor(number, use.passphrase_field), use.passphrase_field)
    return known_passphrase(settings, var, use) or _for_trying(secrets_folder(settings, var) / use.passphrase_file, use)


def known_passphrase(settings: Settings, var: Path, use: KeyUse = LOG) -> bytes | None:
    """The same without side effects: None where a descriptor would be used up, or where none was made yet. Raises ConfigError."""
    field = use.passphrase_field
    kind, _, place = section_of(settings, use).passphrase.partition(":")
    if kind == "fd":
        return None
    if kind == "file":
        return _checked(_from_file(Path(place).absolute(), field, (var, keys_folder(settings, var, use))), field)
    if settings.database.url == EMBEDDED:
        return _made_for_trying(secrets_folder(settings, var) / use.passphrase_file, keys_folder(settings, var, use))
    raise ConfigError(
        f"{field}: not set, and the database is not the embedded one",
        hint="Write a passphrase to a file outside of --var with mode 0600 (`openssl rand -base64 32` makes one) and set it to file:PATH.",
        field=field,
    )


def _from_file(path: Path, field: str, beside: tuple[Path, ...]) -> bytes:
    for folder in beside:
        if path.resolve().is_relative_to(folder.resolve()):
            raise ConfigError(
                f"{field}: {path} lies in {folder}, beside the keys that it opens",
                hint="Keep it elsewhere, so that no copy of that folder holds both.",
                field=field,
            )
    return private_files.read(path, named_by=field)


def read_passphrase(field: str, value: str) -> bytes:
    """The passphrase that `value` of the option `field` names, of any length: file:PATH or fd:N. Raises ConfigError."""
    kind, _, place = value.partition(":")
    if kind not in ("file", "fd"):
        raise ConfigError(f"{field}: must be file:PATH or fd:N, so that the passphrase stands in no list of processes", field=field)
    return (private_files.read(Path(place), named_by=field) if kind == "file" else _from_descriptor(place, field)).rstrip(b"\r\n")


def _from_descriptor(number: str, field: str) -> bytes:
    try:
        with os.fdopen(int(number), "rb") as source:
            return source.read(MAX_BYTES + 1)
    except (OSError, ValueError, TypeError):  # the last for a number that no descriptor can have
        raise ConfigError(
            f"{field}: {number!r} is no descriptor that is open for reading",
            hint="Open it for this command, such as with `3< FILE` at its end and fd:3; it is read once.",
            field=field,
        ) from None


def _made_for_trying(file: Path, keys: Path) -> bytes | None:
    if file.exists():
        return _checked(private_files.read(file), str(file), BACK)
    if newest_signer(keys):
        raise ConfigError(f"{file}: missing, so nobody can open the keys in {keys}", hint=BACK)
    return None


def _for_trying(file: Path, use: KeyUse) -> bytes:
    event = f"{use.section}_keys_for_trying"
    hint = f"what opens the keys of {use.whose} lies beside them; for more than trying set {use.passphrase_field}"
    log.info(event, file=str(file), hint=hint)
    return _checked(private_files.write_once(file, secrets.token_urlsafe(RANDOM_BYTES).encode()), str(file), BACK)


def _checked(passphrase: bytes, called: str, hint: str | None = None) -> bytes:
    text = passphrase.rstrip(b"\r\n")
    if not MIN_BYTES <= len(text) <= MAX_BYTES:
        size = min(len(text), MAX_BYTES + 1)
        raise ConfigError(f"{called}: a passphrase has {MIN_BYTES} to {MAX_BYTES} bytes, not {size}", hint=hint)
    return text
