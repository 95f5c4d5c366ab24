"""The last policy that ran here, kept on disk: what a restart offers while the policy folder is refused.

When down: a copy that cannot be written is logged and the older one stays; one that cannot be read counts as none.
"""

import shutil
from pathlib import Path

import structlog

from app.policy.bundle import ENTRY_FILE, Compiled
from app.policy.kinds import KINDS
from app.policy.modes import Modes

log = structlog.get_logger()


class LastGood:
    """One policy folder, without tests, replaced as a whole."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def known(self, modes: Modes) -> Modes:
        """Those of rules that are kept here: a name that no rule has refuses the policy folder, and must not refuse this one, too."""
        return {name: mode for name, mode in modes.items() if any((self.folder / kind / name).is_dir() for kind in KINDS)}

    def save(self, compiled: Compiled) -> None:
        """Keep the rules and helpers of `compiled`."""
        new, old = self.folder.with_name(f"{self.folder.name}.new"), self.folder.with_name(f"{self.folder.name}.old")
        try:
            for leftover in (new, old):
                shutil.rmtree(leftover, ignore_errors=True)
            for name, text in compiled.modules.items():
                if name != ENTRY_FILE:
                    (new / name).parent.mkdir(parents=True, exist_ok=True)
                    (new / name).write_text(text, "utf-8")
            if self.folder.exists():
                self.folder.rename(old)
            new.rename(self.folder)
            shutil.rmtree(old, ignore_errors=True)
        except OSError as error:
            log.warning("last_good_not_kept", folder=str(self.folder), problem=error.strerror)
