"""Prometheus text 0.0.4 and OpenMetrics 1.0, read fast: a line that was on an earlier page is not parsed again.

A page is read whole or not at all: where a line makes no sense, PageBroken is raised and no sample of it is used.
Spaces, tabs, a trailing comma, CRLF and a missing last newline are read in 0.0.4, because exporters write them.
OpenMetrics is held to its rules by prometheus_client's own parser whenever a page shows a series or comment not seen before.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from prometheus_client.openmetrics.parser import text_string_to_metric_families

from app.errors import SluiceError

KEEP_PAGES = 4
"""Lines remembered, in pages: values that come back (0.0, a full bucket) are common, all values ever seen are not wanted."""
MOST_LINES = 10_000
"""Of one page. A page of vLLM has 600, each further engine rank as many again, one of Triton 20 for each model; to read so many
lines that were never seen takes 20 ms, and 100 where OpenMetrics is checked."""
MOST_SERIES = 2 * MOST_LINES
"""Series remembered: more than the largest page has. One that invents labels for ever must not fill our memory."""
MOST_CHECKED_BYTES, MOST_CHECKED_LINE_BYTES = 512 * 1024, 16 * 1024
"""Of an OpenMetrics page, and of a line on it (a real one has 1 KB): prometheus_client takes up to 0.4 s for so much, and for one
long line the square of its time; readings of other engines, which wait meanwhile, count for a second."""

_LABEL = rb'[ \t]*+[a-zA-Z_][a-zA-Z0-9_]*+[ \t]*+=[ \t]*+"(?:[^"\\]|\\.)*+"[ \t]*+'
_SAMPLE = re.compile(
    rb"[ \t]*+(?P<series>(?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*+)"
    rb"(?:[ \t]*+\{(?P<labels>(?:" + _LABEL + rb"(?:," + _LABEL + rb")*+,?+)?+[ \t]*+)\})?+)"
    rb"[ \t]++(?P<value>[^ \t#]++)(?:[ \t]++[-+.0-9eE]++)?+[ \t]*+(?:\#[ \t]*+\{.*)?+",
    re.DOTALL,
)
_PAIR = re.compile(rb'([a-zA-Z_][a-zA-Z0-9_]*+)[ \t]*+=[ \t]*+"((?:[^"\\]|\\.)*+)"', re.DOTALL)
_ESCAPE = re.compile(r'\\([\\"n])')


class PageBroken(SluiceError):
    """A page that is not a metrics page, or is cut or malformed; nothing of it was read."""

    code = "page_broken"
    hint = "Open the engine's /metrics: it must answer Prometheus text 0.0.4 or OpenMetrics 1.0, whole."


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """One wanted series. The same name and labels are the same object for the life of an Exposition."""

    name: str
    labels: Mapping[str, str]


UNWANTED = Series("", {})
"""Stands for every series that nobody asked for; its values must be numbers all the same."""
Sample = tuple[Series, float] | tuple[()]
NOTHING: Sample = ()
"""A line that carries no wanted sample."""


class Exposition:
    """Reads the pages of one engine. Only samples whose name is wanted are kept; every line must make sense."""

    def __init__(self, wanted: frozenset[str]) -> None:
        self._wanted = {name.encode() for name in wanted}
        self._lines: dict[bytes, Sample] = {}
        self._parts: dict[bytes, Series] = {}
        self._series: dict[tuple[str, frozenset[tuple[str, str]]], Series] = {}
        self._shapes_seen = 0
        self._checked = (-1, 0)

    def read(self, body: bytes, content_type: str) -> dict[Series, float]:
        """The wanted samples; of a series that stands twice (with time stamps), the last. Raises PageBroken."""
        openmetrics = _is_openmetrics(content_type)
        if b"\r" in body:
            body = body.replace(b"\r\n", b"\n")
        lines = body.split(b"\n", MOST_LINES + 1)
        if len(lines) > MOST_LINES + 1:  # what stands after the last line's end is none
            raise PageBroken(f"the page has more than {MOST_LINES} lines: let the engine drop metrics or labels")
        self._forget(lines)
        samples = list(map(self._lines.get, lines))
        if None in samples:
            self._parse(lines, samples)
        if openmetrics:
            self._check(body, lines)
        return dict(sample for sample in samples if sample)

    def _parse(self, lines: list[bytes], samples: list[Sample | None]) -> None:
        """Fill in the samples of lines not seen before. Their series mostly are: then only the value is new."""
        for index, sample in enumerate(samples):
            if sample is None:
                line = lines[index]
                part, _, value = line.rpartition(b" ")
                series = self._parts.get(part)
                if series is None:
                    samples[index] = self._lines[line] = self._learn(line)
                else:
                    number = _number(value)
                    samples[index] = self._lines[line] = NOTHING if series is UNWANTED else (series, number)

    def _learn(self, line: bytes) -> Sample:
        """The sample of a line that no shortcut knows; remembers its series part."""
        if not line.strip() or line.lstrip().startswith(b"#"):
            self._shapes_seen += 1
            return NOTHING
        match = _SAMPLE.fullmatch(line)
        if match is None:
            raise PageBroken(f"not a sample line: {line[:60]!r}")
        part, number = match["series"], _number(match["value"])
        if part not in self._parts:
            self._shapes_seen += 1
            wanted = match["name"] in self._wanted
            self._parts[part] = self._intern(match["name"], match["labels"] or b"") if wanted else UNWANTED
        series = self._parts[part]
        return NOTHING if series is UNWANTED else (series, number)

    def _intern(self, name: bytes, labels: bytes) -> Series:
        try:
            pairs = {label.decode(): _unescape(value.decode()) for label, value in _PAIR.findall(labels)}
        except UnicodeDecodeError:
            raise PageBroken(f"a label of {name.decode()} is not UTF-8") from None
        key = (name.decode(), frozenset(pairs.items()))
        return self._series.setdefault(key, Series(key[0], pairs))

    def _check(self, body: bytes, lines: list[bytes]) -> None:
        """OpenMetrics' own rules, in full only where the page has a shape that was not checked yet."""
        if not body.endswith((b"# EOF\n", b"# EOF")):
            raise PageBroken("the page does not end with # EOF: it was cut")
        shape = (self._shapes_seen, len(lines))
        if shape == self._checked:
            return
        if len(body) > MOST_CHECKED_BYTES or max(map(len, lines)) > MOST_CHECKED_LINE_BYTES:
            raise PageBroken("too large for OpenMetrics: let the engine answer text/plain, or drop metrics or labels")
        try:
            for _ in text_string_to_metric_families(body.decode()):  # type: ignore[no-untyped-call]
                pass
        except ValueError as error:
            raise PageBroken(f"not OpenMetrics: {str(error)[:120]}") from None
        self._checked = shape

    def _forget(self, lines: list[bytes]) -> None:
        """Stay in bounds before a page is read: one that breaks has left its lines, too."""
        if len(self._lines) > KEEP_PAGES * len(lines):
            self._lines = {line: self._lines[line] for line in lines if line in self._lines}
        if len(self._parts) > MOST_SERIES:
            self._parts.clear()
            self._series.clear()
            self._lines.clear()


def _is_openmetrics(content_type: str) -> bool:
    """Whether the type is OpenMetrics; False for text (no type at all is taken for text). Raises PageBroken for any other."""
    kind = content_type.partition(";")[0].strip().lower()
    if kind not in ("", "text/plain", "application/openmetrics-text"):
        raise PageBroken(f"content type {kind[:60]!r} is not a metrics page")
    return kind == "application/openmetrics-text"


def _number(text: bytes) -> float:
    try:
        return float(text if b"_" not in text else b"")  # Python alone reads 1_000
    except ValueError:
        raise PageBroken(f"not a number: {text[:40]!r}") from None


def _unescape(text: str) -> str:
    return _ESCAPE.sub(lambda match: "\n" if match[1] == "n" else match[1], text) if "\\" in text else text
