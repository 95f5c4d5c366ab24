"""Device memory by the page of a DCGM exporter (framebuffer fields, in MiB), for GPUs of other machines.

A MIG instance is told under the UUID of its GPU and its number there: its id is GPU-…/3. The exporter reads the GPUs at an
interval of its own (30 s unless it is started with another), and its page does not tell how old a figure is.
When down: its GPUs keep their last figures, whose age grows, and carry the problem; what is blank or missing is unknown, never 0.
"""

from collections import defaultdict
from collections.abc import Mapping

from app.telemetry.device_memory import MIB, instance_id, told
from app.telemetry.exposition import Exposition, PageBroken
from app.telemetry.snapshot import Gpu

DCGM = "dcgm"
USED = "DCGM_FI_DEV_FB_USED"
FREE = "DCGM_FI_DEV_FB_FREE"
TOTAL = "DCGM_FI_DEV_FB_TOTAL"
RESERVED = "DCGM_FI_DEV_FB_RESERVED"
WANTED = frozenset([USED, FREE, TOTAL, RESERVED])
UUID_LABEL = "UUID"
INSTANCE_LABEL = "GPU_I_ID"
BLANK_FROM = 0x7FFFFFF0
"""The least of the values with which DCGM says that there is none; in MiB it is 2 PiB, which no device has."""
MOST_GPUS = 1024
"""On one page. A rack has less than a hundred."""
MOST_UUID_CHARACTERS = 96
"""NVML's own bound."""


class DcgmPages:
    """Reads page after page of one exporter."""

    def __init__(self) -> None:
        self._exposition = Exposition(WANTED)

    def read(self, body: bytes, content_type: str) -> tuple[Gpu, ...]:
        """The GPUs and MIG instances on the page. Raises PageBroken."""
        fields: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
        for series, mib in self._exposition.read(body, content_type).items():
            if gpu := _id(series.labels):
                # A blank figure leaves the field empty, and the GPU known.
                fields[gpu][series.name] += [int(mib) * MIB] if 0 <= mib < BLANK_FROM else []
        if len(fields) > MOST_GPUS:
            raise PageBroken(f"the page tells more than {MOST_GPUS} GPUs")
        return tuple(_gpu(gpu, figures) for gpu, figures in fields.items())


def _id(labels: Mapping[str, str]) -> str:
    """The id; empty where the labels name no GPU."""
    gpu, instance = labels.get(UUID_LABEL, ""), labels.get(INSTANCE_LABEL, "")
    named = instance_id(gpu, instance) if gpu and instance else gpu
    return named if len(named) <= MOST_UUID_CHARACTERS else ""


def _gpu(gpu: str, figures: Mapping[str, list[int]]) -> Gpu:
    """A GPU that several pods share stands several times: of differing figures the fullest counts.

    Where only the total is told, what the driver reserves is taken off it if that is told, and else counts as free.
    """
    used, reserved = (max(figures.get(name, ()), default=None) for name in (USED, RESERVED))
    free, total = (min(figures.get(name, ()), default=None) for name in (FREE, TOTAL))
    if free is None and total is not None and used is not None:
        free = total - (reserved or 0) - used
    return told(gpu, DCGM, used_bytes=used, free_bytes=free)
