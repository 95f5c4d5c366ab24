"""Device memory by the program nvidia-smi, where NVML cannot be used: `nvidia-smi -q -x`, whose XML is read with care.

It tells a MIG instance by the UUID of its GPU and the instance's number there: its id is GPU-…/3. Each run loads the
libraries anew, so it works again at once after a driver upgrade, but it takes some hundred milliseconds. Blocks.
When down: every GPU is unknown, never 0, with the reason; it is tried again after 5 s, doubling to 60 s.
"""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from app.backoff import Backoff
from app.clock import Clock
from app.telemetry.device_memory import MIB, OTHER, PROBLEM_OF_CODE, SourceDown, instance_id, told, unknown
from app.telemetry.snapshot import Gpu

NVIDIA_SMI = "nvidia-smi"
DEADLINE_S = 5.0
"""It takes below a second, and some seconds on a machine without persistence mode."""
MOST_XML_BYTES = 4 * MIB
"""A GPU takes 20 KB, and one with many processes some more."""
LEAST_INTERVAL_MS = 500.0
"""Between two starts: a run costs as much processor time as a hundred readings of NVML, and 1 s later a figure is stale."""
FIRST_PAUSE_S = 5.0
MOST_PAUSE_S = 60.0
PHRASES = {
    "n/a": "not_supported",
    "not supported": "not_supported",
    "insufficient permissions": "no_permission",
    "gpu is lost": "lost",
    "gpu requires reset": "reset_required",
}
"""What stands, with or without brackets, where a figure should."""
_MIB = re.compile(r"(\d{1,10}) MiB")


class NvidiaSmi:
    """The program, run again and again. Not for two threads at once."""

    def __init__(self, clock: Clock, find: Callable[[str], str | None] | None = None, deadline_s: float = DEADLINE_S) -> None:
        self._clock = clock
        self._find = find or shutil.which
        self._deadline_s = deadline_s
        self._backoff = Backoff(FIRST_PAUSE_S, MOST_PAUSE_S, calm_s=MOST_PAUSE_S)
        self._works_since_ms: float | None = None
        self._next_ms = 0.0

    def read(self) -> tuple[Gpu, ...] | None:
        """All GPUs and MIG instances; None while it is not yet time to ask again. Raises SourceDown."""
        now_ms = self._clock.monotonic_ms()
        if now_ms < self._next_ms:
            return None
        try:
            gpus = parse(*_run(self._find(NVIDIA_SMI), self._deadline_s))
        except SourceDown:
            lived_ms = 0.0 if self._works_since_ms is None else now_ms - self._works_since_ms
            self._works_since_ms = None
            self._next_ms = now_ms + self._backoff.after(lived_ms / 1000) * 1000
            raise
        self._works_since_ms = now_ms if self._works_since_ms is None else self._works_since_ms
        self._next_ms = now_ms + LEAST_INTERVAL_MS
        return gpus


def _run(program: str | None, deadline_s: float) -> tuple[bytes, int]:
    """What it printed, and its exit code. Raises SourceDown where it is not there, does not start or end, or prints without end."""
    if program is None:
        raise SourceDown("no_program")
    command = [program, "-q", "-x"]
    try:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
        )
    except OSError as error:
        raise SourceDown(OTHER, f"{program}: {error.strerror}") from None
    late = threading.Event()
    with process, _deadline(process, deadline_s, late):
        printed = process.stdout.read(MOST_XML_BYTES + 1) if process.stdout else b""
        if len(printed) > MOST_XML_BYTES:
            _kill(process)
            raise SourceDown(OTHER, f"{program} printed more than {MOST_XML_BYTES} bytes")
        process.wait()
    if late.is_set():
        raise SourceDown("timeout", f"{program} took longer than {deadline_s:g} s")
    return printed, process.returncode


@contextlib.contextmanager
def _deadline(process: subprocess.Popen[bytes], deadline_s: float, late: threading.Event) -> Iterator[None]:
    """Kills the process, and sets `late`, where the block takes longer."""

    def end() -> None:
        late.set()
        _kill(process)

    timer = threading.Timer(deadline_s, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _kill(process: subprocess.Popen[bytes]) -> None:
    """It and what it started; its number is its own until it was waited for."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):  # waited for this very moment
            os.killpg(process.pid, signal.SIGKILL)


def parse(printed: bytes, code: int) -> tuple[Gpu, ...]:
    """The GPUs in the XML. Raises SourceDown, by the exit code where that is not 0, for what is not whole or lists none.

    A page that lists GPUs counts whatever the code: it warns of a worn information ROM by 14, too.
    """
    try:
        gpus = tuple(found for gpu in _tree(printed).iterfind("gpu") for found in _gpus(gpu))
    except (expat.ExpatError, ValueError) as error:
        raise SourceDown(PROBLEM_OF_CODE.get(code, OTHER) if code else "parse", str(error)) from None
    if code and not gpus:
        raise SourceDown(PROBLEM_OF_CODE.get(code, OTHER), f"exit code {code}")
    return gpus


def _tree(xml: bytes) -> Element:
    """The document. The DTD that it names is not loaded, and entities are refused: they could unfold without end."""
    builder, parser = TreeBuilder(), expat.ParserCreate()
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    parser.CharacterDataHandler = builder.data
    parser.EntityDeclHandler = _refuse_entity
    parser.Parse(xml, True)
    return builder.close()


def _refuse_entity(name: str, *_: object) -> None:
    raise ValueError(f"declares the entity {name[:40]}")


def _gpus(gpu: Element) -> list[Gpu]:
    """A GPU as itself, or in MIG mode as its instances: of several compute instances on one, the memory is the same."""
    uuid = gpu.findtext("uuid", "").strip()
    if not uuid.startswith("GPU-"):
        return []  # a lost one does not tell who it was
    if gpu.findtext("mig_mode/current_mig", "").strip() != "Enabled":
        return [_memory(uuid, gpu)]
    instances = {}
    for instance in gpu.iterfind("mig_devices/mig_device"):
        if number := instance.findtext("gpu_instance_id", "").strip():
            instances[number] = _memory(instance_id(uuid, number), instance)
    return list(instances.values())


def _memory(gpu: str, element: Element) -> Gpu:
    used, free = (element.findtext(f"fb_memory_usage/{name}", "").strip() for name in ("used", "free"))
    for text in (used, free):
        if problem := PHRASES.get(text.strip("[]").lower()):
            return unknown(gpu, NVIDIA_SMI, problem)
    return told(gpu, NVIDIA_SMI, used_bytes=_bytes(used), free_bytes=_bytes(free))


def _bytes(text: str) -> int | None:
    match = _MIB.fullmatch(text)
    return int(match[1]) * MIB if match else None
