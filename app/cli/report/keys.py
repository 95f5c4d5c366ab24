"""`sluice report keys`: the same for the keys that sign reports, which never sign the log."""

from app.cli.signing_keys import commands_for
from app.signing.uses import REPORTS

app = commands_for(REPORTS, "The keys of reports: who signs, who signed, and what verifiers need.")
