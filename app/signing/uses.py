"""What keys sign: the log or the reports. Each has a folder, a root and a passphrase of its own, kept and changed alike. Pure.

The keys of one never sign what is the other's: whoever trusts a root knows what it vouches for.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class KeyUse:
    """How the keys of one use are named, and what is said where they are missing or are others."""

    section: str
    """Of the settings, with `keys` and `passphrase`; subjects of certificates and names of files and commands begin with it, too."""
    whose: str
    first: str
    """How the first keys come to be."""
    followed: str
    """Who signs with a new signer, and from when on."""
    keeps: str
    other_root: str
    """Why no other root can take over, and what it would take."""
    over: str
    """What it takes when the time of a root is over."""
    anew: str = ""
    """What else a root takes that follows a lost one; empty where none can."""

    @property
    def folder(self) -> str:
        """The name of the folder under --var where the keys are unless a setting names another."""
        return f"{self.section}-keys"

    @property
    def passphrase_file(self) -> str:
        """The name of the file under secrets/ with the passphrase that is made for trying."""
        return f"{self.section}-passphrase"

    @property
    def keys_field(self) -> str:
        """The setting that names another folder."""
        return f"{self.section}.keys"

    @property
    def passphrase_field(self) -> str:
        """The setting that says where the passphrase is."""
        return f"{self.section}.passphrase"

    @property
    def command(self) -> str:
        """What changes the keys."""
        return f"sluice {self.section} keys"

    @property
    def way_on(self) -> str:
        """A sentence to end a remedy with: what to do where keys are lost for good. Empty where none can take over."""
        return f" If it is lost, move what is left of the folder away; then `{self.command} init` makes new keys." if self.anew else ""


LOG = KeyUse(
    section="audit",
    whose="this log",
    first="`sluice audit run` makes one at its first start",
    followed="a running `audit run` follows within seconds",
    keeps="a log keeps its root",
    other_root="No other root can take over: a new log is a new database.",
    over="a new log with keys of its own",
)
REPORTS = KeyUse(
    section="report",
    whose="these reports",
    first="`sluice report nightly` makes one for the first night of a log, and keys that were lost come back from a backup",
    followed="the next report is signed with it",
    keeps="reports keep their root",
    other_root="Whoever checks reports was given that root: another takes a folder of its own, and must be handed out anew.",
    over="new keys in a folder of their own, whose root is handed out anew",
    anew="Reports of another root say nothing to the next ones: the first of this root does not join the night before it, and no longer "
    "vouches for the log's root by what earlier ones took. Where the log's keys are elsewhere, first set report.log_root: "
    "`sluice audit keys export-public --root` prints the file there.",
)
