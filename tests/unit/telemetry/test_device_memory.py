"""Figures of device memory: what can be true is told, anything else is unknown, and nothing ever becomes 0 of 0."""

from hypothesis import given
from hypothesis import strategies as st

from app.telemetry.device_memory import MOST_BYTES, told
from app.telemetry.snapshot import Gpu

FIGURES = st.one_of(st.none(), st.integers(-(2**64), 2**64), st.sampled_from([0, MOST_BYTES - 1, MOST_BYTES, 2**63 - 16]))


def test_total_is_what_programs_can_have():
    """3 bytes used and 1 free are three quarters of 4."""
    assert told("g", "nvml", used_bytes=3, free_bytes=1) == Gpu("g", 4, 3, 0.75, source="nvml")


def test_used_without_free_is_no_share():
    """How much is used is told on, and that the rest is missing."""
    assert told("g", "dcgm", used_bytes=0, free_bytes=None) == Gpu("g", used_bytes=0, source="dcgm", problem="missing")


@given(used=FIGURES, free=FIGURES)
def test_a_share_is_known_or_there_is_a_problem(used, free):
    """A known share lies in 0..1 and belongs to a device that has memory; without one the reason is told."""
    gpu = told("g", "nvml", used_bytes=used, free_bytes=free)

    assert (gpu.memory_ratio is None) == (gpu.problem is not None)
    if gpu.memory_ratio is not None:
        assert 0 <= gpu.memory_ratio <= 1
        assert 0 < gpu.total_bytes == used + free
