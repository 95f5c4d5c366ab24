"""`sluice audit keys`: replace the key that signs the log, bring one of your own, hand out what verifiers need.

Nothing secret is printed. Commands that open private keys first forbid dumps of their memory.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from app.cli.operator import operator
from app.cli.options import Config, Overrides, Var, print_table, quiet_settings_of

if TYPE_CHECKING:
    from app.signing.certificates import Certificate
    from app.signing.keys import KeyFolder

app = typer.Typer(help="The log's keys: who signs, who signed, and what verifiers need.", no_args_is_help=True)


@app.command()
def rotate(*, var: Var = Path("var"), config: Config = None, overrides: Overrides = None) -> None:
    """Issue the next signer and remove the private key of the last one; a running `audit run` follows within seconds."""
    from app.clock import SystemClock

    _tell_signer(_open_folder(var, config, overrides).rotate(SystemClock().utcnow(), operator=operator()))


@app.command("import")
def import_(
    *,
    key: Annotated[Path, typer.Option(help="PEM of the signer's private key, PKCS#8 or SEC 1, encrypted or not")],
    certificate: Annotated[Path, typer.Option(help="PEM of its certificate, issued by the root")],
    root: Annotated[Path | None, typer.Option(help="PEM of your root's certificate; needed by a folder that has none yet")] = None,
    key_passphrase: Annotated[str | None, typer.Option(help="what --key is encrypted with: file:PATH or fd:N")] = None,
    var: Var = Path("var"),
    config: Config = None,
    overrides: Overrides = None,
) -> None:
    """Take a signer that your own root issued; the folder keeps its key encrypted with audit.passphrase. Your files stay as they are."""
    from app.clock import SystemClock
    from app.signing.certificates import Certificate
    from app.signing.key_files import load_key, told
    from app.signing.passphrase import read_passphrase

    folder = _open_folder(var, config, overrides)
    passphrase = read_passphrase("--key-passphrase", key_passphrase) if key_passphrase else None
    with told(key, "Name an SM2 key that this user may read, and its passphrase with --key-passphrase where it has one."):
        private = load_key(key.read_bytes(), passphrase)
    with told(certificate, "Name a certificate in PEM that this user may read."):
        public = Certificate.load_pem(certificate.read_bytes())
    issuer = None
    if root:
        with told(root, "Name a certificate in PEM that this user may read."):
            issuer = Certificate.load_pem(root.read_bytes())
    _tell_signer(folder.import_signer(private, public, issuer, SystemClock().utcnow(), operator=operator()))


@app.command()
def export_public(
    *,
    root: Annotated[bool, typer.Option("--root", help="the root alone: what verifiers take as --root")] = False,
    var: Var = Path("var"),
    config: Config = None,
    overrides: Overrides = None,
) -> None:
    """Print the certificates of the root and of all signers as PEM, each under its SM3 fingerprint. Needs no passphrase."""
    from app.signing.key_files import read_certificates
    from app.signing.keys import keys_folder

    certificates = read_certificates(keys_folder(quiet_settings_of(config, var, overrides, "audit-keys"), var))
    for one in (certificates.root,) if root else certificates.all:
        typer.echo(f"# {one.subject}\n# SM3 fingerprint {one.fingerprint.hex()}\n{one.pem}", nl=False)


@app.command("list")
def list_(
    *,
    output: Annotated[Literal["table", "json"], typer.Option(help="for people or for programs")] = "table",
    var: Var = Path("var"),
    config: Config = None,
    overrides: Overrides = None,
) -> None:
    """List the root and all signers, the newest last. Needs no passphrase."""
    import json

    rows = _rows(var, config, overrides)
    if output == "json":
        typer.echo(json.dumps(rows, indent=2))
        return
    lines = [("STATE", "NAME", "NOT AFTER", "KEY HERE", "SM3 FINGERPRINT")]
    lines += [
        (row["state"], row["subject"], row["not_after"][:10], "yes" if row["key_here"] else "no", row["sm3_fingerprint"]) for row in rows
    ]
    print_table(lines)


def _rows(var: Path, config: Path | None, overrides: list[str] | None) -> list[dict[str, Any]]:
    from app.signing.key_files import read_certificates, root_file, signer_file
    from app.signing.keys import keys_folder

    folder = keys_folder(quiet_settings_of(config, var, overrides, "audit-keys"), var)
    certificates = read_certificates(folder)
    newest = len(certificates.signers)
    rows = [_row("root", certificates.root, root_file(folder))]
    for number, signer in enumerate(certificates.signers, start=1):
        rows.append(_row("signs" if number == newest else "replaced", signer, signer_file(folder, number)))
    return rows


def _row(state: str, certificate: "Certificate", file: Path) -> dict[str, Any]:
    from app.instants import rfc3339

    return {
        "state": state,
        "subject": certificate.subject,
        "not_before": rfc3339(certificate.not_before),
        "not_after": rfc3339(certificate.not_after),
        "key_here": file.with_suffix(".key").exists(),
        "sm3_fingerprint": certificate.fingerprint.hex(),
    }


def _open_folder(var: Path, config: Path | None, overrides: list[str] | None) -> "KeyFolder":
    """The folder for a command that opens private keys. Raises ConfigError."""
    from app import core_dumps
    from app.signing import sm2
    from app.signing.keys import KeyFolder, keys_folder
    from app.signing.passphrase import passphrase_of

    core_dumps.forbid()
    settings = quiet_settings_of(config, var, overrides, "audit-keys")
    sm2.self_test()
    return KeyFolder(keys_folder(settings, var), passphrase_of(settings, var))


def _tell_signer(certificate: "Certificate") -> None:
    typer.echo(f"{certificate.subject} signs from now on, until {certificate.not_after:%Y-%m-%d} at the latest")
    typer.echo(f"SM3 fingerprint {certificate.fingerprint.hex()}")
