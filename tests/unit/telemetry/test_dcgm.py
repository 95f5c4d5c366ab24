"""Pages of DCGM exporters: figures in MiB, instances by their number, blanks that are no figures."""

import pytest

from app.telemetry.dcgm import MOST_GPUS, DcgmPages
from app.telemetry.device_memory import MIB
from app.telemetry.exposition import PageBroken
from app.telemetry.snapshot import Gpu
from tests.unit.telemetry.samples import FOLDER, needs_samples

USED, FREE, TOTAL, RESERVED = (f"DCGM_FI_DEV_FB_{name}" for name in ("USED", "FREE", "TOTAL", "RESERVED"))
PLAIN = 'UUID="GPU-a",gpu="0",Hostname="h"'


def read(*lines, labels=PLAIN):
    """The GPUs of a page of these lines, NAME VALUE each, or with labels of its own."""
    return DcgmPages().read("".join(line if "{" in line else line.replace(" ", f"{{{labels}}} ") for line in lines).encode(), "text/plain")


def told(used, total, gpu="GPU-a"):
    return Gpu(gpu, total * MIB, used * MIB, used / total, source="dcgm")


def test_used_and_free_make_the_share():
    """Both are in MiB; what is reserved is in neither."""
    assert read(f"{USED} 1000\n", f"{FREE} 3000\n", f"{RESERVED} 96\n") == (told(1000, 4000),)


def test_without_free_the_total_tells():
    """What is reserved is taken off the total where the page has it."""
    assert read(f"{USED} 1000\n", f"{TOTAL} 4000\n") == (told(1000, 4000),)
    assert read(f"{USED} 1000\n", f"{TOTAL} 4096\n", f"{RESERVED} 96\n") == (told(1000, 4000),)


def test_used_alone_makes_no_share():
    """A page with neither free nor total leaves the share unknown."""
    assert read(f"{USED} 1000\n") == (Gpu("GPU-a", used_bytes=1000 * MIB, source="dcgm", problem="missing"),)


@pytest.mark.parametrize("blank", ["9223372036854775792", "9223372036854775794", "2147483632", "140737488355328", "NaN", "-1", "+Inf"])
def test_a_blank_is_no_figure(blank):
    """The values by which DCGM says that it has none leave the GPU known and its memory unknown, never 0."""
    assert read(f"{USED} {blank}\n", f"{FREE} 3000\n") == (Gpu("GPU-a", source="dcgm", problem="missing"),)
    assert [gpu.memory_ratio for gpu in read(f"{USED} 1000\n", f"{FREE} {blank}\n")] == [None]


def test_instances_are_told_by_gpu_and_number():
    """All of a GPU's instances stand under its UUID; an empty number is the GPU itself."""
    labels = 'UUID="GPU-a",GPU_I_PROFILE="1g.10gb",GPU_I_ID='
    page = [f'{name}{{{labels}"{number}"}} {mib}\n' for number, mib in (("3", 100), ("", 300)) for name in (USED, FREE)]

    assert read(*page) == (told(100, 200, "GPU-a/3"), told(300, 600))


def test_a_shared_gpu_counts_as_the_fullest_of_its_rows():
    """Pods that share a GPU have a row each, which may have been written a moment apart."""
    rows = [
        f'{name}{{UUID="GPU-a",pod="{pod}"}} {mib}\n' for name, pod, mib in ((USED, 1, 10), (USED, 2, 30), (FREE, 1, 90), (FREE, 2, 70))
    ]

    assert read(*rows) == (told(30, 100),)


def test_what_has_no_uuid_is_nobodys():
    """Rows that name no GPU, or by what is longer than any UUID, are passed over."""
    assert read(f"{USED} 1\n", labels='gpu="0"') == ()
    assert read(f"{USED} 1\n", labels=f'UUID="{"x" * 97}"') == ()


def test_a_page_of_countless_gpus_is_broken():
    """A page that invents GPUs does not fill the snapshot."""
    rows = [f'{USED}{{UUID="GPU-{number}"}} 1\n' for number in range(MOST_GPUS + 1)]
    with pytest.raises(PageBroken, match="more than 1024 GPUs"):
        read(*rows)
    assert len(read(*rows[1:])) == MOST_GPUS


@needs_samples
def test_a_recorded_page_without_free():
    """Rows of several machines, each with what is used alone: known GPUs and an instance, none with a share."""
    gpus = DcgmPages().read((FOLDER / "metrics/dcgm_edge_cases.prom").read_bytes(), "text/plain; version=0.0.4")

    assert {gpu.id: (gpu.used_bytes, gpu.memory_ratio) for gpu in gpus} == {
        "GPU-1f027ee8-6e1e-2b8c-0108-3d370e5f0418/3": (10 * MIB, None),
        "GPU-20c56d28-0da5-6d26-a36a-e7af1ce2586e": (0, None),
    }
