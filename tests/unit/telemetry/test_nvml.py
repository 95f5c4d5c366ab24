"""NVML as this process meets it: devices that cannot tell, instances, lost ones, and a library that fails or is not there."""

import itertools

import pynvml
import pytest

from app.clock import ManualClock
from app.telemetry.device_memory import SourceDown
from app.telemetry.nvml import Nvml
from app.telemetry.snapshot import Gpu
from tests.fixtures.nvml import GIB, Device
from tests.fixtures.nvml import Nvml as Library


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def library(monkeypatch):
    library = Library()
    library.install(monkeypatch)
    return library


@pytest.fixture
def nvml(clock, library):
    return Nvml(clock)


def problem(nvml):
    """What a reading raises."""
    with pytest.raises(SourceDown) as down:
        nvml.read()
    return down.value.problem


def told(gpu, used, total, **more):
    return Gpu(gpu, total * GIB, used * GIB, used / total, source="nvml", **more)


def test_each_device_tells_what_it_can(library, nvml):
    """One tells, one cannot, one in MIG mode is its instances and not itself, and one that is lost keeps its name; no other notices."""
    lost = Device("GPU-3", used=60 * GIB)
    instances = [Device("MIG-a", 20 * GIB, 5 * GIB), None, Device("MIG-b", 40 * GIB, 30 * GIB)]
    library.devices = [Device("GPU-0"), Device("GPU-1", error=pynvml.NVML_ERROR_NOT_SUPPORTED), Device("GPU-2", mig=instances), lost]
    others = (
        told("GPU-0", 20, 80),
        Gpu("GPU-1", source="nvml", problem="not_supported"),
        told("MIG-a", 5, 20),
        told("MIG-b", 30, 40),
    )

    assert nvml.read() == (*others, told("GPU-3", 60, 80))
    lost.error = pynvml.NVML_ERROR_GPU_IS_LOST
    assert nvml.read() == (*others, Gpu("GPU-3", source="nvml", problem="lost"))
    lost.error, lost.gone = pynvml.NVML_SUCCESS, pynvml.NVML_ERROR_GPU_IS_LOST
    assert nvml.read() == (*others, Gpu("GPU-3", source="nvml", problem="lost"))
    library.devices.remove(lost)
    assert nvml.read() == others


def test_an_instance_that_cannot_tell_hides_no_other(library, nvml):
    """Of two instances one may not be looked at; the other is told."""
    library.devices = [Device("GPU-0", mig=[Device("MIG-a", error=pynvml.NVML_ERROR_NO_PERMISSION), Device("MIG-b")])]

    assert nvml.read() == (Gpu("MIG-a", source="nvml", problem="no_permission"), told("MIG-b", 20, 80))


def test_instances_that_are_made_anew_are_read_anew(library, nvml):
    """MIG mode may be turned on, and its instances changed, while we run."""
    library.devices = [Device("GPU-0")]
    assert [gpu.id for gpu in nvml.read()] == ["GPU-0"]
    library.devices[0].mig = [Device("MIG-a")]
    assert [gpu.id for gpu in nvml.read()] == ["MIG-a"]
    library.devices[0].mig = []
    assert nvml.read() == ()


def test_what_is_reserved_is_neither_used_nor_free(library, nvml):
    """Of 80 GiB with 4 reserved, 19 used are a quarter of the 76 that programs can have."""
    library.devices = [Device("GPU-0", 80 * GIB, used=19 * GIB, reserved=4 * GIB)]

    assert nvml.read() == (told("GPU-0", 19, 76),)


@pytest.mark.parametrize("lacks", [{"nvmlDeviceGetMemoryInfo_v2"}, {"nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetMigMode"}])
def test_an_old_library_is_asked_in_the_old_form(library, nvml, lacks):
    """There the reserved memory is among the used."""
    library.devices, library.without = [Device("GPU-0", 80 * GIB, used=16 * GIB, reserved=4 * GIB)], frozenset(lacks)

    assert nvml.read() == (told("GPU-0", 20, 80),)


def test_memory_of_no_size_is_unknown(library, nvml):
    """A device that reports 0 bytes of 0, as one without memory of its own may, is not an empty one."""
    library.devices = [Device("GPU-0", total=0, used=0)]

    assert nvml.read() == (Gpu("GPU-0", source="nvml", problem="impossible"),)


def test_a_driver_upgrade_under_us_is_an_outage_and_never_a_reading(clock, library, nvml):
    """After ten good seconds each call says mismatch; then the library is let go, left alone for 5 s, and loaded anew."""
    library.devices = [Device("GPU-0")]
    for _ in range(50):
        assert nvml.read() == (told("GPU-0", 20, 80),)
        clock.advance(200)
    library.failure = pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH
    assert problem(nvml) == "driver_mismatch"
    assert (library.loads, library.unloads) == (1, 1)

    library.failure = pynvml.NVML_SUCCESS
    clock.advance(4999)
    assert nvml.read() is None
    clock.advance(1)
    assert nvml.read() == (told("GPU-0", 20, 80),)
    assert library.loads == 2


def seconds_to_the_next_try(clock, nvml):
    """For how long it asks nothing."""
    for waited_s in itertools.count():
        try:
            if nvml.read() is not None:
                return waited_s
        except SourceDown:
            return waited_s
        clock.advance(1000)
    return None


def test_tries_grow_rarer(clock, library, nvml):
    """After 5 s, then 10, 20, 40 and from then on 60 it is tried again; after a calm minute the pauses begin anew."""
    library.devices, library.failure = [Device("GPU-0")], pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH
    assert problem(nvml) == "driver_mismatch"
    assert [seconds_to_the_next_try(clock, nvml) for _ in range(6)] == [5, 10, 20, 40, 60, 60]

    library.failure = pynvml.NVML_SUCCESS
    assert seconds_to_the_next_try(clock, nvml) == 60
    clock.advance(60_000)
    library.failure = pynvml.NVML_ERROR_DRIVER_NOT_LOADED
    assert problem(nvml) == "no_driver"
    assert seconds_to_the_next_try(clock, nvml) == 5


def test_no_library_is_said_and_looked_for_again(clock, library, nvml):
    """A machine without it has no GPU to tell; one that gets it later has."""
    library.absent = True
    assert problem(nvml) == "no_library"
    assert nvml.read() is None
    library.absent, library.devices = False, [Device("GPU-0")]
    clock.advance(5000)
    assert [gpu.id for gpu in nvml.read()] == ["GPU-0"]


def test_a_library_that_goes_while_it_is_read(clock, library, nvml):
    """It works, then mismatches, then is not there at all: an outage each time."""
    library.devices = [Device("GPU-0")]
    assert nvml.read() is not None
    library.failure, library.absent = pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH, True
    assert problem(nvml) == "driver_mismatch"
    clock.advance(5000)
    assert problem(nvml) == "no_library"


@pytest.mark.parametrize("code", [pynvml.NVML_ERROR_UNKNOWN, 12345])
def test_an_unknown_code_is_a_failure(library, nvml, code):
    """Codes of newer libraries need no word of ours: of one device, of all."""
    library.devices = [Device("GPU-0", error=code), Device("GPU-1")]
    assert nvml.read() == (Gpu("GPU-0", source="nvml", problem="failed"), told("GPU-1", 20, 80))
    library.failure = code
    assert problem(nvml) == "failed"


def test_close_lets_the_library_go(library, nvml):
    """Afterwards nothing is held, also where nothing was."""
    nvml.close()
    library.devices = [Device("GPU-0")]
    nvml.read()
    nvml.close()

    assert (library.loads, library.shutdowns, library.unloads) == (1, 1, 1)
