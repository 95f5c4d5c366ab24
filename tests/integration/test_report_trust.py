"""What a night's signatures rest on: time stamps, the root of the log, and what the log says of the signer."""

import dataclasses
from datetime import timedelta
from pathlib import Path

import pytest
import structlog

from app.cli.report.nightly import make_missing
from app.errors import ConfigError
from app.reports.making.log_root import given_root, trust_in
from app.reports.sealing.timestamps import NoTimeStamp, TimeStampAuthority
from app.reports.shelf.shelf import Shelf
from app.setting_sections import ReportSettings
from app.signing.certificates import make_root
from app.signing.keys import KeyFolder
from app.signing.sm2 import PrivateKey
from tests.fixtures.made_nights import FIRST, manifest
from tests.fixtures.making import DAY, NightLife
from tests.fixtures.signing import MADE

STAMPED = ["mlps.pdf", "gdpr.pdf", "decisions.csv", "entries.csv", "manifest.json"]
"""What time stamps are over, in the order of signing."""


async def test_the_log_is_told_who_signs_reports_before_the_first(over: NightLife):
    """One entry for the signer, before that of the night, and none the second time."""
    await over.maker().make(DAY)
    await over.maker().make(DAY, again=True)
    await over.settled()
    kinds = [
        kind for (kind,) in await over.grown.rows("SELECT kind FROM audit.body WHERE kind IN ('key.created', 'report.made') ORDER BY seq")
    ]
    assert kinds[-3:] == ["key.created", "report.made", "report.made"]
    assert kinds.count("key.created") == 2  # one of the eventful day, of an API key


async def test_a_time_stamp_authority_is_asked_again_for_the_next_night(over: NightLife, monkeypatch: pytest.MonkeyPatch):
    """What it did not give for one night is told of that one alone."""
    over.materials = dataclasses.replace(over.materials, settings=ReportSettings(timestamp_url="http://localhost:1/"))
    asked: list[bytes] = []

    def silent(_: TimeStampAuthority, digest: bytes) -> bytes:
        asked.append(digest)
        raise NoTimeStamp(f"call {len(asked)}")

    monkeypatch.setattr(TimeStampAuthority, "stamp", silent)
    await over.settled()
    over.grown.clock.advance(timedelta(days=1).total_seconds() * 1000)
    await make_missing(over.maker(), "UTC")
    left_out = [manifest(over.shelf / name).versions["left_out"] for name in over.folders()]
    assert left_out[1][0] == f"no time stamp: call {len(asked) // 2 + 1}"
    assert not set(left_out[0]) & set(left_out[1])


async def test_a_time_stamp_that_the_manifest_itself_lacks_is_logged(over: NightLife, monkeypatch: pytest.MonkeyPatch):
    """Its text is signed by then and cannot say it: one line of the log does, and none of what the manifest says."""
    over.materials = dataclasses.replace(over.materials, settings=ReportSettings(timestamp_url="http://localhost:1/"))
    asked: list[bytes] = []

    def falls_silent(_: TimeStampAuthority, digest: bytes) -> bytes:
        asked.append(digest)
        if len(asked) == len(STAMPED):
            raise NoTimeStamp("localhost: refused")
        return b"stamp"

    monkeypatch.setattr(TimeStampAuthority, "stamp", falls_silent)
    with structlog.testing.capture_logs() as logged:
        folder = (await over.maker().make(DAY)).folder
    assert sorted(path.stem for path in folder.glob("*.tsr")) == sorted(STAMPED[:-1])
    assert manifest(folder).versions["left_out"] == []
    told = {"event": "report.manifest_not_stamped", "log_level": "warning", "report": FIRST, "problem": "no time stamp: localhost: refused"}
    assert [line for line in logged if line["event"].startswith("report.")] == [told]


async def test_a_root_that_comes_from_the_log_itself_counts_when_an_earlier_report_had_it(over: NightLife):
    """With the log's keys elsewhere and no report.log_root, the first night's log is not checked; from the second on its root is pinned.

    Another root is not trusted, not even after the reports that were made under it.
    """
    over.materials = dataclasses.replace(over.materials, log_root=None)
    first = manifest((await over.maker().make(DAY)).folder)
    second = manifest((await over.maker().make(DAY, again=True)).folder)
    assert (first.versions["log_root"], second.versions["log_root"]) == ("log", "pinned")
    assert first.log.verdict == second.log.verdict == "whole"
    assert (first.verdicts["mlps"]["met"], first.verdicts["mlps"]["partly"]) == (0, 0)
    assert second.verdicts["mlps"]["met"] > 0

    shelf, root, another = Shelf(over.shelf), over.materials.keys.root, make_root(PrivateKey.generate(), MADE)
    assert trust_in(over.grown.keys.root, shelf, root) == "pinned"
    assert trust_in(another, shelf, root) == "log"
    assert trust_in(over.grown.keys.root, shelf, another) == "log"  # nobody signed those reports


def test_the_root_of_the_log_comes_from_its_setting_or_its_keys(tmp_path: Path, key_folder: KeyFolder):
    """The file that is named counts; what is no root certificate is refused with the remedy."""
    other = make_root(PrivateKey.generate(), MADE)
    (tmp_path / "root.pem").write_text(other.pem)
    (tmp_path / "none.pem").write_text("nothing")
    for file, root in ((str(tmp_path / "root.pem"), other), ("", key_folder.root)):
        found = given_root(file, key_folder.path)
        assert found is not None
        assert found.fingerprint == root.fingerprint
    assert given_root("", tmp_path / "elsewhere") is None
    for name in ("none.pem", "missing.pem"):
        with pytest.raises(ConfigError, match=r"report\.log_root") as refused:
            given_root(str(tmp_path / name), key_folder.path)
        assert "export-public --root" in refused.value.advice
