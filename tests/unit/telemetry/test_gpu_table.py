"""Several sources over each other: whose figures count, when they are gone, and the least of the last three seconds."""

from dataclasses import replace

import pytest

from app.telemetry.gpu_table import GpuTable
from app.telemetry.snapshot import Gpu


def gpu(ratio, name="g", source="nvml"):
    return Gpu(name, 100, round(ratio * 100), ratio, source=source)


@pytest.fixture
def table():
    table = GpuTable()
    table.order = ("nvml", "nvidia-smi", "http://a", "http://b")
    return table


def ratios(table):
    return {gpu.id: (gpu.source, gpu.memory_ratio, gpu.problem) for gpu in table.gpus()}


def test_the_first_source_is_believed(table):
    """NVML's figures win over an exporter's, whoever told last; what only one knows is told by it."""
    table.tell("nvml", [gpu(0.5)], taken_ms=10, now_ms=11)
    table.tell("http://a", [gpu(0.9, source="dcgm"), gpu(0.4, "h", "dcgm")], taken_ms=20, now_ms=21)

    assert ratios(table) == {"g": ("nvml", 0.5, None), "h": ("dcgm", 0.4, None)}
    assert table.taken_ms() == {"g": 10, "h": 20}


def test_a_source_that_cannot_tell_gives_way(table):
    """Where NVML says that it cannot, or does not answer, good figures of another count, and are left again for its own."""
    table.tell("http://b", [gpu(0.9, source="dcgm")], taken_ms=0, now_ms=0)
    table.tell("nvml", [Gpu("g", source="nvml", problem="not_supported")], taken_ms=1, now_ms=1)
    assert ratios(table) == {"g": ("dcgm", 0.9, None)}
    table.tell("nvml", [gpu(0.5)], taken_ms=2, now_ms=2)
    assert ratios(table) == {"g": ("nvml", 0.5, None)}
    table.late("nvml", "timeout")
    assert ratios(table) == {"g": ("dcgm", 0.9, None)}


def test_an_outage_leaves_no_figure(table):
    """All GPUs of a failed source are there, unknown, with the reason and no age."""
    table.tell("nvml", [gpu(0.5), gpu(0.6, "h")], taken_ms=1, now_ms=1)
    table.fail("nvml", "driver_mismatch", now_ms=2)

    assert table.gpus() == [Gpu(name, source="nvml", problem="driver_mismatch") for name in ("g", "h")]
    assert table.taken_ms() == {}


def test_silence_lets_figures_grow_old(table):
    """A source that does not answer keeps its figures, taken when they were, beside the problem."""
    table.tell("http://a", [gpu(0.5, source="dcgm")], taken_ms=1, now_ms=1)
    table.late("http://a", "connect")

    assert table.gpus() == [replace(gpu(0.5, source="dcgm"), problem="connect")]
    assert table.taken_ms() == {"g": 1}


def test_what_is_told_no_more_is_gone(table):
    """A GPU that leaves, or whose source is not asked any more, is not there."""
    table.tell("nvml", [gpu(0.5), gpu(0.6, "h")], taken_ms=1, now_ms=1)
    table.tell("nvml", [gpu(0.5)], taken_ms=2, now_ms=2)
    assert list(ratios(table)) == ["g"]
    table.drop("nvml")
    assert ratios(table) == {}


def floors(table, *steps):
    """The floor after each reading (ratio or None for an outage), one every 200 ms."""
    told = []
    for number, ratio in enumerate(steps):
        now_ms = number * 200
        if ratio is None:
            table.fail("nvml", "lost", now_ms=now_ms)
        else:
            table.tell("nvml", [gpu(ratio)], taken_ms=now_ms, now_ms=now_ms)
        told.append(table.gpus()[0].memory_floor)
    return told


def test_the_floor_is_the_least_of_three_seconds(table):
    """It is known from 3 s on, and follows a dip at once, and leaves it 3 s later."""
    told = floors(table, *[0.9] * 16, 0.7, *[0.9] * 16)

    assert told == [None] * 15 + [0.9] + [0.7] * 16 + [0.9]


def test_an_outage_begins_the_floor_anew(table):
    """What happened meanwhile nobody saw."""
    told = floors(table, *[0.9] * 16, None, *[0.9] * 16)

    assert told == [None] * 15 + [0.9] + [None] * 16 + [0.9]
