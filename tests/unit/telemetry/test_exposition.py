"""The page reader: tolerant of what exporters write, strict where a page is broken, and never half of a page."""

import contextlib
import io
import json
import math
import tarfile

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Gauge, generate_latest

from app.telemetry import exposition
from app.telemetry.exposition import Exposition, PageBroken
from tests.unit.telemetry.pages import OPENMETRICS, TEXT
from tests.unit.telemetry.samples import FOLDER, needs_samples


def read(body, content_type=TEXT, wanted=("a",)):
    samples = Exposition(frozenset(wanted)).read(body, content_type)
    return {(series.name, *sorted(series.labels.items())): value for series, value in samples.items()}


@pytest.mark.parametrize(
    ("line", "labels", "value"),
    [
        (b"a 1", (), 1.0),
        (b"a{} 1.5e3", (), 1500.0),
        (b'a{x="1",y="2"} -2', (("x", "1"), ("y", "2")), -2.0),
        (b'a { x="1" , y="2" , }  4', (("x", "1"), ("y", "2")), 4.0),
        (b'a{x="1",}\t0.5', (("x", "1"),), 0.5),
        (b'  a{x="1"} 4 1700000000000', (("x", "1"),), 4.0),
        (b'a{x="q\\"b\\\\n\\n{},=# 9"} 4', (("x", 'q"b\\n\n{},=# 9'),), 4.0),
        ('a{x="模型"} +Inf'.encode(), (("x", "模型"),), math.inf),
        (b'a{x="1"} 4 # {trace_id="b"} 0.3 17', (("x", "1"),), 4.0),
        (b'a{x=""} 0x'.replace(b"0x", b"0"), (("x", ""),), 0.0),
    ],
)
def test_sample_lines(line, labels, value):
    """Spaces, tabs, trailing commas, escapes, time stamps and exemplars are read as what they mean."""
    assert read(line + b"\n") == {("a", *labels): value}


@pytest.mark.parametrize("end", [b"\n", b"", b"\r\n", b"\n\n", b"\n \t\n# a comment\n"])
def test_line_ends(end):
    """CRLF, a missing last newline, blank lines and comments change nothing."""
    assert read(b"# TYPE a gauge" + (b"\r\n" if b"\r" in end else b"\n") + b"a 1" + end) == {("a",): 1.0}


@pytest.mark.parametrize(
    "body",
    [
        b"<html><body>upstream is starting</body></html>\n",
        b'{"error": "no"}\n',
        b'b 1\na{x="1",mod',
        b'a{x="1"}',
        b'a{x="1"} ',
        b"a",
        b"a one\n",
        b"a 1_000\n",
        b"a 1 2 3\n",
        b'a{x="1" y="2"} 1\n',
        b"a{x=1} 1\n",
        b'a{x="1} 1\n',
        b'a{,x="1"} 1\n',
        b'a{x="1",,} 1\n',
        b"1a 1\n",
        b'a{x="\xff"} 1\n',
        b"a 1\nunwanted one\n",
    ],
)
def test_broken_pages_are_refused_whole(body):
    """One line that makes no sense refuses the page, wanted or not, and names it."""
    with pytest.raises(PageBroken):
        read(body)


def test_only_wanted_names():
    """A name that merely begins or ends alike is another name."""
    assert read(b"a_sum 9\nmy_a 9\na:b 9\na 1\n") == {("a",): 1.0}


def test_of_a_repeated_series_the_last_counts():
    """The same series with two time stamps has the value of the last line."""
    assert read(b'a{x="1",y="2"} 1 10\na{y="2",x="1"} 2 20\n') == {("a", ("x", "1"), ("y", "2")): 2.0}


@pytest.mark.parametrize("content_type", ["", "text/plain", "TEXT/PLAIN; version=0.0.4"])
def test_text_by_content_type(content_type):
    """Text is read with and without parameters, and where no type is given."""
    assert read(b"a 1\n", content_type) == {("a",): 1.0}


@pytest.mark.parametrize("content_type", ["text/html", "application/json", "application/vnd.google.protobuf"])
def test_other_content_types_are_refused(content_type):
    """A type that is no metrics page is refused before its body is looked at."""
    with pytest.raises(PageBroken, match="is not a metrics page"):
        read(b"a 1\n", content_type)


@pytest.mark.parametrize(
    "body",
    [
        b"# TYPE a gauge\na 1\n",
        b"# TYPE a gauge\na 1\n# EOF\nb 1\n",
        b"# TYPE a gauge\n# TYPE a gauge\na 1\n# EOF\n",
        b"# TYPE a gauge\n\na 1\n# EOF\n",
        b"# TYPE a counter\na_total -1\n# EOF\n",
    ],
)
def test_openmetrics_rules(body):
    """OpenMetrics without its end, with anything after it, or against its rules is refused."""
    with pytest.raises(PageBroken):
        read(body, OPENMETRICS)


def test_openmetrics_is_checked_again_when_its_shape_changes():
    """A page that loses its end, or gains a line against the rules, is refused though all before it were good."""
    reader = Exposition(frozenset(["a"]))
    good = b"# TYPE a gauge\na 1\n# EOF\n"
    reader.read(good, OPENMETRICS)
    assert list(reader.read(good.replace(b"a 1", b"a 2"), OPENMETRICS).values()) == [2.0]

    with pytest.raises(PageBroken):
        reader.read(b"# TYPE a gauge\na 1\n", OPENMETRICS)
    with pytest.raises(PageBroken):
        reader.read(b"# TYPE a gauge\na 1\n# TYPE b gauge\n# TYPE b gauge\n# EOF\n", OPENMETRICS)
    assert list(reader.read(good, OPENMETRICS).values()) == [1.0]


def test_remembered_lines_do_not_outlive_their_page():
    """What an earlier page said is gone when the next page does not say it."""
    reader = Exposition(frozenset(["a"]))
    assert len(reader.read(b'a{x="1"} 1\na{x="2"} 2\n', TEXT)) == 2
    assert list(reader.read(b'a{x="2"} 2\n', TEXT).values()) == [2.0]
    assert list(reader.read(b'a{x="2"} 3\n', TEXT).values()) == [3.0]


def test_a_broken_page_leaves_the_reader_usable():
    """After a broken page the next good one is read as if nothing had been."""
    reader = Exposition(frozenset(["a"]))
    with pytest.raises(PageBroken):
        reader.read(b"a 1\n<html>\n", TEXT)
    assert list(reader.read(b"a 1\n", TEXT).values()) == [1.0]


def test_memory_stays_in_bounds(monkeypatch):
    """An engine whose values and labels never repeat does not fill the memory."""
    monkeypatch.setattr(exposition, "MOST_SERIES", 50)
    reader = Exposition(frozenset(["a"]))
    for number in range(1000):
        samples = reader.read(f'a{{x="{number}"}} {number}\nb{{x="{number}"}} {number}\n'.encode(), TEXT)
        assert list(samples.values()) == [float(number)]

    assert len(reader._lines) <= 4 * 3 + 3
    assert len(reader._parts) <= 50 + 2


def test_pages_that_always_break_leave_memory_in_bounds():
    """A page whose values never repeat and that breaks at its end does not fill the memory either."""
    reader = Exposition(frozenset(["a"]))
    for number in range(1000):
        with pytest.raises(PageBroken):
            reader.read(f"a {number}\n<html>\n".encode(), TEXT)

    assert len(reader._lines) <= 4 * 3 + 3


@pytest.mark.parametrize("content_type", [TEXT, OPENMETRICS])
def test_a_page_of_too_many_lines_is_refused(content_type):
    """Ten thousand lines are read, one more is a broken page that names the remedy; nothing of it is remembered."""
    reader, end = Exposition(frozenset(["a"])), b"# EOF\n" if content_type == OPENMETRICS else b"# no more\n"
    lines = [b'a{x="%d"} 1\n' % number for number in range(10_000)]
    assert len(reader.read(b"".join(lines[1:]) + end, content_type)) == 9_999
    known = len(reader._lines)

    with pytest.raises(PageBroken, match="drop metrics or labels"):
        reader.read(b"".join(lines) + end, content_type)
    assert len(reader._lines) == known


@pytest.mark.parametrize(
    "line", [b'a{x="%s"} 1\n' % (b"x" * 20_000), b'a{x="%s"} 1\n' % (b"x" * 8_000) * 80], ids=["a long line", "many bytes"]
)
def test_what_is_too_large_for_openmetrics(line):
    """OpenMetrics, whose check is slow, is refused above 512 KiB or 16 KiB a line; text of that size is read."""
    assert len(read(line)) == 1
    with pytest.raises(PageBroken, match="too large for OpenMetrics"):
        read(line + b"# EOF\n", OPENMETRICS)


@given(st.dictionaries(st.text(max_size=12), st.floats(allow_nan=False), max_size=5))
def test_what_the_usual_exporter_writes_is_read(values):
    """Every label and value that prometheus_client can write comes back character for character."""
    registry = CollectorRegistry()
    gauge = Gauge("a", "Any\\text\nhere.", ["x"], registry=registry)
    for label, value in values.items():
        gauge.labels(label).set(value)

    assert read(generate_latest(registry)) == {("a", ("x", label)): value for label, value in values.items()}


@given(st.lists(st.sampled_from(["a 1", "a 2", "b 1", 'a{x="1"} 1', "# c", "", 'a{x="1"} 2', "b x"]), max_size=6), st.integers(0, 4))
def test_memory_changes_no_answer(lines, split):
    """A reader that has seen other pages before reads a page exactly as a new one does."""
    body, earlier = "\n".join(lines).encode(), "\n".join(lines[split:]).encode()
    used = Exposition(frozenset(["a"]))
    answers = []
    for reader, pages in ((used, (earlier, body)), (Exposition(frozenset(["a"])), (body,))):
        answer = None
        for one in pages:
            try:
                answer = {(s.name, *s.labels.items()): v for s, v in reader.read(one, TEXT).items()}
            except PageBroken:
                answer = "broken"
        answers.append(answer)

    assert answers[0] == answers[1]


@given(st.binary(max_size=200), st.sampled_from([TEXT, OPENMETRICS]))
def test_any_bytes_are_read_or_refused(body, content_type):
    """Whatever comes is samples or PageBroken, never another exception."""
    with contextlib.suppress(PageBroken):
        read(body, content_type)


@needs_samples
def test_the_openmetrics_cases():
    """Of the 211 published parser cases the valid ones are read and the invalid ones refused."""
    wrong, seen = [], 0
    with tarfile.open(FOLDER / "openmetrics-parsers.tar.gz") as archive:
        files = {member.name: archive.extractfile(member).read() for member in archive if member.isfile()}
    for name, verdict in files.items():
        if not name.endswith("/test.json"):
            continue
        seen += 1
        try:
            read(files[name.replace("test.json", "metrics")], OPENMETRICS)
            parsed = True
        except PageBroken:
            parsed = False
        if parsed != json.load(io.BytesIO(verdict))["shouldParse"]:
            wrong.append(name)

    assert (seen, wrong) == (211, [])


@needs_samples
def test_exemplars_and_histograms_of_a_recorded_page():
    """Sum and count beside exemplars are read: 31 s over 100 first tokens are 310 ms."""
    wanted = ("vllm:time_to_first_token_seconds_sum", "vllm:time_to_first_token_seconds_count")
    samples = read((FOLDER / "telemetry/19_openmetrics_exemplar_eof.prom").read_bytes(), OPENMETRICS, wanted)
    total_s, count = (samples[(name, ("engine", "0"), ("model_name", "m"))] for name in wanted)

    assert total_s / count * 1000 == pytest.approx(310)
