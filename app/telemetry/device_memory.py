"""Device memory of one GPU as a source told it: figures that can be true, or unknown and why. Pure."""

from app.telemetry.snapshot import Gpu

MIB = 1024 * 1024
MOST_BYTES = 2**53
"""More than any device has, and less than any of the values with which DCGM and NVML say that there is none."""
PROBLEM_OF_CODE = {
    1: "uninitialized",
    3: "not_supported",
    4: "no_permission",
    9: "no_driver",
    12: "no_library",
    15: "lost",
    16: "reset_required",
    18: "driver_mismatch",
}
"""What NVML's return codes mean to us, which are the exit codes of nvidia-smi, too. Any other is `failed`."""
OTHER = "failed"


def told(gpu: str, source: str, *, used_bytes: int | None, free_bytes: int | None) -> Gpu:
    """The GPU with these figures; unknown where they are missing or cannot be true, and so never 0 of 0.

    Its total is what is used and what is free: all that programs can have. What the driver keeps for itself is in neither,
    where the source tells it apart; older ones count it as used.
    """
    if used_bytes is None or not 0 <= used_bytes < MOST_BYTES:
        return unknown(gpu, source, "missing" if used_bytes is None else "impossible")
    if free_bytes is None:
        return Gpu(gpu, used_bytes=used_bytes, source=source, problem="missing")
    total_bytes = used_bytes + free_bytes
    if free_bytes < 0 or not 0 < total_bytes < MOST_BYTES:
        return unknown(gpu, source, "impossible")
    return Gpu(gpu, total_bytes, used_bytes, used_bytes / total_bytes, source=source)


def unknown(gpu: str, source: str, problem: str) -> Gpu:
    """A GPU that is there and tells nothing."""
    return Gpu(gpu, source=source, problem=problem)


def instance_id(gpu: str, instance: str) -> str:
    """The id of a MIG instance where a source tells only the GPU's UUID and the number of the instance on it: GPU-…/3."""
    return f"{gpu}/{instance}"


class SourceDown(Exception):
    """A source of device memory that tells nothing at all; `problem` is a word, `detail` for the log."""

    def __init__(self, problem: str, detail: str = "") -> None:
        super().__init__(detail or problem)
        self.problem = problem
