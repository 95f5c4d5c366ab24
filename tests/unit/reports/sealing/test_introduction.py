"""The log is told of each signer of reports once, whoever had it made."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import orjson
import pytest

from app.reports.sealing.introduction import introductions, known_signers
from app.signing.keys import KeyFolder
from app.signing.uses import REPORTS
from tests.fixtures.signing import MADE, PASSPHRASE

AT = datetime(2026, 11, 30, tzinfo=UTC)


@pytest.mark.usefixtures("quick_encryption")
def test_each_signer_is_told_of_once(tmp_path: Path):
    """The first by key.created of the service, one that an operator made by key.rotated with the one before; then nothing is owed."""
    keys = KeyFolder(tmp_path / "keys", PASSPHRASE, REPORTS)
    keys.open_or_make(MADE)
    [first] = introductions(keys, (), AT)
    keys.rotate(MADE + timedelta(days=1), operator="cli:root")
    told = [orjson.loads(entry.body) for entry in introductions(keys, (), AT)]
    of_log = {"key": keys.certificate.fingerprint.hex(), "use": "log"}

    assert [(one["kind"], one["use"], one["operator"]) for one in told] == [
        ("key.created", "report", "sluice"),
        ("key.rotated", "report", "cli:root"),
    ]
    assert orjson.loads(first.body)["after"] == told[0]["after"] == told[1]["before"]
    assert told[1]["after"]["subject"].startswith("Sluice report signer ")
    assert [entry.kind for entry in introductions(keys, known_signers([told[0], of_log]), AT)] == ["key.rotated"]
    assert introductions(keys, known_signers(told), AT) == []
