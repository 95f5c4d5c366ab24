"""Device memory by NVIDIA's management library, through nvidia-ml-py (import name pynvml). Calls block, and may hang.

A GPU in MIG mode is told as its instances, each by its own UUID. A library that stops working is let go and loaded anew,
because a driver may have been upgraded under us: only a fresh load finds the library that belongs to it.
When down: every GPU is unknown, never 0, with the reason; it is tried again after 5 s, doubling to 60 s.
"""

import contextlib
from _ctypes import dlclose
from typing import Any

import pynvml

from app.backoff import Backoff
from app.clock import Clock
from app.telemetry.device_memory import OTHER, PROBLEM_OF_CODE, SourceDown, told, unknown
from app.telemetry.snapshot import Gpu

NVML = "nvml"
FIRST_PAUSE_S = 5.0
"""A driver that is being upgraded takes longer than this, and each try costs its loading."""
MOST_PAUSE_S = 60.0
OF_THE_WHOLE = frozenset(["uninitialized", "no_driver", "no_library", "driver_mismatch"])
"""Problems of the library, whichever device was asked."""
NO_SUCH_FORM = (pynvml.NVML_ERROR_FUNCTION_NOT_FOUND, pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH)
"""How a library says that it is older than a call."""
NO_MIG = (pynvml.NVML_ERROR_NOT_SUPPORTED, pynvml.NVML_ERROR_FUNCTION_NOT_FOUND)


class Nvml:
    """The library while it works. Not for two threads at once."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._backoff = Backoff(FIRST_PAUSE_S, MOST_PAUSE_S, calm_s=MOST_PAUSE_S)
        self._opened_ms: float | None = None
        self._retry_ms = 0.0
        self._seen: dict[int, tuple[str, ...]] = {}

    def read(self) -> tuple[Gpu, ...] | None:
        """All GPUs and MIG instances now; None while it pauses after an outage. Raises SourceDown where one begins or goes on."""
        now_ms = self._clock.monotonic_ms()
        if self._opened_ms is None and now_ms < self._retry_ms:
            return None
        try:
            if self._opened_ms is None:
                pynvml.nvmlInit()
                self._opened_ms = now_ms
            return tuple(gpu for index in range(pynvml.nvmlDeviceGetCount()) for gpu in self._device(index))
        except pynvml.NVMLError as error:
            lived_ms = 0.0 if self._opened_ms is None else now_ms - self._opened_ms
            self.close()
            self._retry_ms = now_ms + self._backoff.after(lived_ms / 1000) * 1000
            raise SourceDown(_problem(error), f"NVML code {error.value}") from None

    def close(self) -> None:
        """Let the library go."""
        self._opened_ms = None
        self._seen.clear()
        with contextlib.suppress(pynvml.NVMLError):
            pynvml.nvmlShutdown()
        library, pynvml.nvmlLib = pynvml.nvmlLib, None
        pynvml._nvmlGetFunctionPointer_cache.clear()  # noqa: SLF001 - it has no call that lets go of a library
        if library is not None:
            dlclose(library._handle)  # noqa: SLF001 - nor has ctypes

    def _device(self, index: int) -> list[Gpu]:
        """A device as itself or as its instances; by the ids it had, where it cannot say them any more."""
        try:
            handle = pynvml.nvmlDeviceGetHandleByIndex(index)
            gpus = _instances(handle) if _in_mig_mode(handle) else [_read(handle)]
        except pynvml.NVMLError as error:
            return [unknown(gpu, NVML, _of_device(error)) for gpu in self._seen.get(index, ())]
        self._seen[index] = tuple(gpu.id for gpu in gpus)
        return gpus


def _in_mig_mode(handle: Any) -> bool:
    try:
        return bool(pynvml.nvmlDeviceGetMigMode(handle)[0] == pynvml.NVML_DEVICE_MIG_ENABLE)
    except pynvml.NVMLError as error:
        if error.value in NO_MIG:
            return False
        raise


def _instances(handle: Any) -> list[Gpu]:
    """The instances that stand on a device; their numbers may have gaps."""
    gpus = []
    for index in range(pynvml.nvmlDeviceGetMaxMigDeviceCount(handle)):
        try:
            instance = pynvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, index)
        except pynvml.NVMLError as error:
            if error.value != pynvml.NVML_ERROR_NOT_FOUND:
                raise
        else:
            gpus.append(_read(instance))
    return gpus


def _read(handle: Any) -> Gpu:
    gpu = pynvml.nvmlDeviceGetUUID(handle)
    try:
        memory = _memory(handle)
    except pynvml.NVMLError as error:
        return unknown(gpu, NVML, _of_device(error))
    return told(gpu, NVML, used_bytes=memory.used, free_bytes=memory.free)


def _memory(handle: Any) -> Any:
    """Used and free bytes; what the driver reserves is in neither where the library tells it apart, else in the used."""
    try:
        return pynvml.nvmlDeviceGetMemoryInfo(handle, version=pynvml.nvmlMemory_v2)
    except pynvml.NVMLError as error:
        if error.value not in NO_SUCH_FORM:
            raise
        return pynvml.nvmlDeviceGetMemoryInfo(handle)


def _of_device(error: Any) -> str:
    """The problem of one device. Raises what is one of the whole library."""
    problem = _problem(error)
    if problem in OF_THE_WHOLE:
        raise error
    return problem


def _problem(error: Any) -> str:
    return PROBLEM_OF_CODE.get(error.value, OTHER)
