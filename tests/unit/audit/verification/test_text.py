"""The verifier's report for people."""

from app.audit.verification.report import Report, finding
from app.audit.verification.text import report_lines


def test_a_report_names_what_it_found_line_by_line():
    """Verdict first, then what was checked, then what is wrong and where, then remarks."""
    report = Report(
        verdict="tampered",
        findings=(
            finding("tampered", "entry", "altered", 3),
            finding("gap", "purge", "gone", 4, 6),
            finding("tampered", "end", "cut off"),
        ),
        remarks=("something else",),
        log="sluice/x",
        first=3,
        end=7,
        entries=1,
        purged=3,
        recorded_first="2026-01-01T00:00:00.000000Z",
        recorded_last="2026-01-02T00:00:00.000000Z",
        checkpoints=2,
        size=9,
        root="ab",
    )

    assert list(report_lines(report)) == [
        "tampered",
        "  log          sluice/x",
        "  entries      3 to 6: 1 with their bodies, 3 purged",
        "  recorded     2026-01-01T00:00:00.000000Z to 2026-01-02T00:00:00.000000Z",
        "  checkpoints  2 good",
        "  anchors      0 good",
        "  newest       size 9, root ab",
        "tampered   entry 3: altered",
        "gap        entries 4 to 6: gone",
        "tampered   cut off",
        "remark     something else",
    ]


def test_names_in_a_file_do_not_steer_a_terminal():
    """What cannot be printed is written out."""
    assert list(report_lines(Report("whole", (), log="a\x1b[2Jb")))[1] == "  log          a\\u001b[2Jb"
    assert list(report_lines(Report("whole", ())))[0:] == ["whole"]
