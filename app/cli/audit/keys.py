"""`sluice audit keys`: replace the key that signs the log, bring one of your own, hand out what verifiers need."""

from app.cli.signing_keys import commands_for
from app.signing.uses import LOG

app = commands_for(LOG, "The log's keys: who signs, who signed, and what verifiers need.")
