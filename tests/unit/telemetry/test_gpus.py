"""Device memory on the board, under outages of each source, with a clock moved by hand and a library at its C functions."""

import asyncio
import threading

import pynvml
import pytest
from structlog.testing import capture_logs

from app.background import Background
from app.catalog.models import ModelSpec
from app.clock import ManualClock
from app.observability.metrics import Metrics
from app.setting_sections import EngineSettings, GpuSettings
from app.telemetry.board import Board
from app.telemetry.build_view import build_view
from app.telemetry.dcgm import DcgmPages
from app.telemetry.gpu_readings import GpuReadings
from app.telemetry.gpus import Gpus
from app.telemetry.nvidia_smi import NvidiaSmi
from app.telemetry.room import memories
from app.telemetry.scrape import open_session
from app.telemetry.snapshot import Node, Reading
from tests.fixtures.nvml import Device
from tests.fixtures.nvml import Nvml as Library
from tests.fixtures.telemetry import raw_engine
from tests.fixtures.waiting import until

XML = b"<nvidia_smi_log><gpu><uuid>GPU-0</uuid><fb_memory_usage><used>30 MiB</used><free>70 MiB</free></fb_memory_usage></gpu></nvidia_smi_log>"


class Machine:
    """The board, the library, and readings by hand every 200 ms."""

    def __init__(self, monkeypatch, tmp_path, session):
        self.clock, self.metrics, self.library = ManualClock(), Metrics(), Library([Device("GPU-0")])
        self.library.install(monkeypatch)
        self.programs: dict[str, str] = {}
        self.folder = tmp_path
        self.board = Board(self.clock)
        self.readings = GpuReadings(
            self.board,
            session,
            clock=self.clock,
            metrics=self.metrics,
            scrape_timeout_ms=500,
            nvidia_smi=NvidiaSmi(self.clock, find=self.programs.get),
        )
        self.readings.configure(GpuSettings(), [])

    def nvidia_smi(self, script):
        """Let the program be there."""
        path = self.folder / "nvidia-smi"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        self.programs["nvidia-smi"] = str(path)

    async def read(self, times=1):
        for _ in range(times):
            await self.readings.read()
            self.clock.advance(200)

    def told(self):
        return {gpu.id: (gpu.memory_ratio, gpu.problem) for gpu in self.board.snapshot().gpus}

    def value(self, name, **labels):
        return self.metrics.registry.get_sample_value(name, labels)


@pytest.fixture
async def machine(monkeypatch, tmp_path):
    async with open_session() as session:
        machine = Machine(monkeypatch, tmp_path, session)
        yield machine
        await machine.readings.close()


async def test_memory_is_on_the_board(machine):
    """Its figures, source and age, and from 3 s on its floor; a gauge tells the share."""
    await machine.read(16)
    (gpu,) = machine.board.snapshot().gpus

    assert (gpu.id, gpu.memory_ratio, gpu.memory_floor, gpu.source, gpu.age_ms) == ("GPU-0", 0.25, 0.25, "nvml", 200)
    assert machine.value("sluice_gpu_memory_ratio", gpu="GPU-0") == 0.25


async def test_one_that_cannot_tell_and_one_that_is_lost(machine):
    """Each is unknown, counted and never 0; instances are told; a node on them has no memory reading, the others have."""
    lost = Device("GPU-3")
    machine.library.devices += [
        Device("GPU-1", error=pynvml.NVML_ERROR_NOT_SUPPORTED),
        Device("GPU-2", mig=[Device("MIG-a", used=8 * 2**30), Device("MIG-b", used=16 * 2**30)]),
        lost,
    ]
    await machine.read()
    lost.error = pynvml.NVML_ERROR_GPU_IS_LOST
    await machine.read(2)

    told = {"GPU-0": (0.25, None), "GPU-1": (None, "not_supported"), "MIG-a": (0.1, None), "MIG-b": (0.2, None), "GPU-3": (None, "lost")}
    assert machine.told() == told
    assert machine.value("sluice_gpu_errors_total", source="nvml", problem="lost") == 2
    assert machine.value("sluice_gpu_errors_total", source="nvml", problem="not_supported") == 3
    assert machine.value("sluice_gpu_memory_ratio", gpu="GPU-3") is None
    assert memory_of(machine, "MIG-a", "MIG-b") == 0.2
    assert [memory_of(machine, "MIG-a", gpu) for gpu in ("GPU-1", "GPU-2", "GPU-3")] == [None, None, None]


def memory_of(machine, *gpus):
    """What rules read of a model whose one node runs on these GPUs."""
    machine.board.put(Node("a", ("m",), gpus=gpus, readings={"m": Reading(kv_ratio=0.5, waiting=0)}), machine.clock.monotonic_ms())
    snapshot = machine.board.snapshot()
    view = build_view(snapshot, {"m": ModelSpec(id="m")}, memories(snapshot, 1000), stale_ms=1000)
    assert view.models["m"].readings["live"] == 1
    return view.models["m"].readings.get("memory")


async def test_a_driver_upgrade_is_an_outage_with_a_line_a_minute(machine):
    """After 10 s each call says mismatch, and later the library is gone: unknown all the time, retried with pauses, told rarely."""
    await machine.read(50)
    machine.library.failure = pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH
    with capture_logs() as lines:
        for _ in range(5 * 60):
            await machine.read()
            assert machine.told() == {"GPU-0": (None, "driver_mismatch")}
            assert memory_of(machine, "GPU-0") is None
    assert [line["problem"] for line in lines if line["log_level"] == "warning"] == ["driver_mismatch"]
    # In this minute it is tried at 0, 5, 15 and 35 s.
    assert machine.value("sluice_gpu_errors_total", source="nvml", problem="driver_mismatch") == 4
    assert machine.value("sluice_gpu_memory_ratio", gpu="GPU-0") is None

    machine.library.absent = True
    await machine.read(5 * 60)
    assert machine.told() == {"GPU-0": (None, "no_library")}
    machine.library.absent, machine.library.failure = False, pynvml.NVML_SUCCESS
    await machine.read(5 * 60)
    assert machine.told() == {"GPU-0": (0.25, None)}


async def test_a_machine_without_gpus_is_quiet(machine):
    """No library and no program is one line at the start, no warning and no error."""
    machine.library.absent = True
    with capture_logs() as lines:
        await machine.read(5 * 600)

    assert lines == [
        {"event": "gpus.sources", "log_level": "info", "nvml": "no_library", "nvidia-smi": "no_program", "dcgm": []},
    ]
    assert machine.told() == {}


async def test_nvidia_smi_stands_in(machine):
    """While NVML cannot be used the program tells, and no more when NVML is back."""
    (machine.folder / "page").write_bytes(XML)
    machine.nvidia_smi(f"cat {machine.folder}/page")
    machine.library.failure = pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH
    await machine.read()
    assert machine.board.snapshot().gpus[0].source == "nvidia-smi"
    assert machine.told() == {"GPU-0": (0.3, None)}

    machine.library.failure = pynvml.NVML_SUCCESS
    machine.clock.advance(5000)
    await machine.read()
    assert machine.told() == {"GPU-0": (0.25, None)}


async def test_sources_that_are_off_are_not_asked(machine):
    """What they told before is gone."""
    await machine.read()
    machine.nvidia_smi("touch $0.asked")
    machine.readings.configure(GpuSettings(nvml="off", nvidia_smi="off"), [])
    await machine.read()

    assert machine.told() == {}
    assert not (machine.folder / "nvidia-smi.asked").exists()


async def test_a_library_that_hangs_is_left_to_its_thread(machine, monkeypatch):
    """The reading ends at its deadline, is counted, and no more threads are taken; the last figures grow old."""
    await machine.read()
    release, devices = threading.Event(), machine.library.devices
    machine.library.devices = Hanging(release)
    with monkeypatch.context() as patience:
        patience.setattr("app.telemetry.gpu_readings.NVML_TIMEOUT_S", 0.02)
        await machine.read(20)
    (thread,) = (thread for thread in threading.enumerate() if thread.name == "nvml")
    machine.library.devices = devices

    assert machine.told() == {"GPU-0": (0.25, "timeout")}
    assert machine.board.snapshot().gpus[0].age_ms == 21 * 200
    assert memory_of(machine, "GPU-0") is None
    assert machine.value("sluice_gpu_errors_total", source="nvml", problem="timeout") == 20
    release.set()
    thread.join(5)
    await machine.read()
    assert machine.told() == {"GPU-0": (0.25, None)}


class Hanging(list):
    """Devices that nobody can count before the event."""

    def __init__(self, release):
        super().__init__()
        self._release = release

    def __len__(self):
        self._release.wait(30)
        return 0


async def test_gpus_that_nobody_reports_are_named_once(machine):
    """Who names a GPU that no source knows is told 5 s after the start, once, and again when another one is missing."""
    engines = [EngineSettings(name="a", url="http://h", models=["m"], gpus=["GPU-0", "GPU-9"])]
    machine.readings.configure(GpuSettings(), engines)
    with capture_logs() as lines:
        await machine.read(100)
        machine.library.devices = [Device("GPU-9")]
        await machine.read(100)

    warnings = [line for line in lines if line["event"] == "gpus.not_reported"]
    assert [(line["gpus"], line["engines"]) for line in warnings] == [(["GPU-9"], ["a"]), (["GPU-0"], ["a"])]


def page(used, free, gpu="GPU-0"):
    lines = f'DCGM_FI_DEV_FB_USED{{UUID="{gpu}"}} {used}\nDCGM_FI_DEV_FB_FREE{{UUID="{gpu}"}} {free}\n'.encode()
    return b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: %d\r\nconnection: close\r\n\r\n%s" % (len(lines), lines)


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (b"HTTP/1.1 503 Gone\r\ncontent-length: 0\r\nconnection: close\r\n\r\n", "status"),
        (b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 4\r\nconnection: close\r\n\r\n<a/>", "parse"),
        (page(1, 1)[:-1], "parse"),
        (None, "connect"),
    ],
)
async def test_an_exporter_that_answers_badly(machine, answer, problem):
    """Its last figures grow old beside the problem, which is counted; its address shows no password."""
    async with raw_engine(page(60, 40, "GPU-7")) as url:
        machine.readings.configure(GpuSettings(dcgm=[url]), [])
        await machine.readings.scrape(url, DcgmPages())
    assert machine.told()["GPU-7"] == (0.6, None)
    machine.clock.advance(2000)
    async with raw_engine(answer or b"") as other:
        bad = (other if answer else url).replace("http://", "http://user:sesame@")
        machine.readings.configure(GpuSettings(dcgm=[url, bad]), [])
        with capture_logs() as lines:
            await machine.readings.scrape(bad, DcgmPages())

    assert machine.value("sluice_gpu_errors_total", source="dcgm", problem=problem) >= 1
    assert "sesame" not in str(lines)
    assert machine.told()["GPU-7"] == (0.6, None)


async def test_sources_are_read_all_the_time_and_left(machine):
    """The tasks ask this machine beside the exporters, NVML is believed first, and an exporter that is not configured any more is gone."""
    background = Background(machine.clock, Metrics())
    gpus = Gpus(machine.readings, background, machine.clock)
    async with raw_engine(page(60, 40)) as same, raw_engine(page(50, 50, "GPU-7")) as other:
        gpus.configure(GpuSettings(interval_ms=100, dcgm=[same, other]), [])
        await until(lambda: machine.told() == {"GPU-0": (0.25, None), "GPU-7": (0.5, None)})
        gpus.configure(GpuSettings(interval_ms=100, dcgm=[same]), [])
        await until(lambda: machine.told() == {"GPU-0": (0.25, None)})
        await background.stop()
        await gpus.close()
    assert [task.get_name() for task in asyncio.all_tasks() if "GPUs" in task.get_name()] == []


async def test_no_password_of_an_exporter_is_told_at_the_start(machine):
    """An exporter that answers before this machine does is not in the line about the machine's own sources, nor is its address."""
    async with raw_engine(page(60, 40)) as url:
        secret = url.replace("http://", "http://user:hunter2@")
        machine.readings.configure(GpuSettings(dcgm=[secret]), [])
        with capture_logs() as lines:
            await machine.readings.scrape(secret, DcgmPages())
            await machine.read()

    assert [line["event"] for line in lines].count("gpus.sources") == 1
    assert "hunter2" not in str(lines)


async def test_the_library_is_let_go_at_the_end(machine):
    """Once nothing is read any more it is shut down and unloaded."""
    await machine.read()
    await machine.readings.close()

    assert (machine.library.shutdowns, machine.library.unloads) == (1, 1)
