"""Commands that keep keys which sign: replace them, bring your own, hand out what verifiers need. The log's and the reports' are alike.

Nothing secret is printed. Commands that open private keys first forbid dumps of their memory.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from app.cli.operator import operator
from app.cli.options import Config, Overrides, Var, print_table, quiet_settings_of
from app.signing.uses import KeyUse

if TYPE_CHECKING:
    from app.settings import Settings
    from app.signing.certificates import Certificate
    from app.signing.keys import KeyFolder


def commands_for(use: KeyUse, about: str) -> typer.Typer:
    """The commands for the keys of `use`, with `about` as their help."""
    app, keys = typer.Typer(help=about, no_args_is_help=True), KeyCommands(use)
    app.command(help=f"Issue the next signer and remove the private key of the last one; {use.followed}.")(keys.rotate)
    taken = f"the folder keeps its key encrypted with {use.passphrase_field}"
    app.command("import", help=f"Take a signer that your own root issued; {taken}. Your files stay as they are.")(keys.import_)
    app.command()(keys.export_public)
    app.command("list")(keys.list_)
    if use.anew:
        app.command()(keys.init)
    return app


@dataclass(frozen=True, slots=True)
class KeyCommands:
    """What the commands do, for the keys of one use."""

    use: KeyUse

    def init(self, *, var: Var = Path("var"), config: Config = None, overrides: Overrides = None) -> None:
        """Make new keys in a folder that has none: a root and its first signer.

        Where earlier keys were lost this starts under another root: what was signed is checked under its own from then on. Hand out the new.
        """
        from app.clock import SystemClock

        keys = self._open_folder(var, config, overrides)
        _tell_signer(keys.make(SystemClock().utcnow(), operator=operator()))
        typer.echo(f"SM3 fingerprint of the root {keys.root.fingerprint.hex()}: `{self.use.command} export-public --root` prints it")
        typer.echo(self.use.anew)

    def rotate(self, *, var: Var = Path("var"), config: Config = None, overrides: Overrides = None) -> None:
        """Issue the next signer and remove the private key of the last one."""
        from app.clock import SystemClock

        _tell_signer(self._open_folder(var, config, overrides).rotate(SystemClock().utcnow(), operator=operator()))

    def import_(
        self,
        *,
        key: Annotated[Path, typer.Option(help="PEM of the signer's private key, PKCS#8 or SEC 1, encrypted or not")],
        certificate: Annotated[Path, typer.Option(help="PEM of its certificate, issued by the root")],
        root: Annotated[Path | None, typer.Option(help="PEM of your root's certificate; needed by a folder that has none yet")] = None,
        key_passphrase: Annotated[str | None, typer.Option(help="what --key is encrypted with: file:PATH or fd:N")] = None,
        var: Var = Path("var"),
        config: Config = None,
        overrides: Overrides = None,
    ) -> None:
        """Take a signer that your own root issued."""
        from app.clock import SystemClock
        from app.signing.certificates import Certificate
        from app.signing.key_files import load_key, told
        from app.signing.passphrase import read_passphrase

        folder = self._open_folder(var, config, overrides)
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

    def export_public(
        self,
        *,
        root: Annotated[bool, typer.Option("--root", help="the root alone: what verifiers take as --root")] = False,
        var: Var = Path("var"),
        config: Config = None,
        overrides: Overrides = None,
    ) -> None:
        """Print the certificates of the root and of all signers as PEM, each under its SM3 fingerprint. Needs no passphrase."""
        from app.signing.key_files import read_certificates, read_root_alone
        from app.signing.keys import keys_folder

        folder = keys_folder(self._settings(config, var, overrides), var, self.use)
        for one in (read_root_alone(folder, self.use),) if root else read_certificates(folder, self.use).all:
            typer.echo(f"# {one.subject}\n# SM3 fingerprint {one.fingerprint.hex()}\n{one.pem}", nl=False)

    def list_(
        self,
        *,
        output: Annotated[Literal["table", "json"], typer.Option(help="for people or for programs")] = "table",
        var: Var = Path("var"),
        config: Config = None,
        overrides: Overrides = None,
    ) -> None:
        """List the root and all signers, the newest last. Needs no passphrase."""
        import json

        rows = self._rows(var, config, overrides)
        if output == "json":
            typer.echo(json.dumps(rows, indent=2))
            return
        lines = [("STATE", "NAME", "NOT AFTER", "KEY HERE", "SM3 FINGERPRINT")]
        lines += [
            (row["state"], row["subject"], row["not_after"][:10], "yes" if row["key_here"] else "no", row["sm3_fingerprint"])
            for row in rows
        ]
        print_table(lines)

    def _rows(self, var: Path, config: Path | None, overrides: list[str] | None) -> list[dict[str, Any]]:
        from app.signing.key_files import read_certificates, root_file, signer_file
        from app.signing.keys import keys_folder

        folder = keys_folder(self._settings(config, var, overrides), var, self.use)
        certificates = read_certificates(folder, self.use)
        newest = len(certificates.signers)
        rows = [_row("root", certificates.root, root_file(folder))]
        for number, signer in enumerate(certificates.signers, start=1):
            rows.append(_row("signs" if number == newest else "replaced", signer, signer_file(folder, number)))
        return rows

    def _settings(self, config: Path | None, var: Path, overrides: list[str] | None) -> "Settings":
        return quiet_settings_of(config, var, overrides, self.use.folder)

    def _open_folder(self, var: Path, config: Path | None, overrides: list[str] | None) -> "KeyFolder":
        """The folder for a command that opens private keys. Raises ConfigError."""
        from app import core_dumps
        from app.signing import sm2
        from app.signing.keys import KeyFolder, keys_folder
        from app.signing.passphrase import passphrase_of

        core_dumps.forbid()
        settings = self._settings(config, var, overrides)
        sm2.self_test()
        return KeyFolder(keys_folder(settings, var, self.use), passphrase_of(settings, var, self.use), self.use)


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


def _tell_signer(certificate: "Certificate") -> None:
    typer.echo(f"{certificate.subject} signs from now on, until {certificate.not_after:%Y-%m-%d} at the latest")
    typer.echo(f"SM3 fingerprint {certificate.fingerprint.hex()}")
