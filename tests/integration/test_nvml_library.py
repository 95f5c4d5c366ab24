"""A real shared library in the place of NVIDIA's, replaced under the running process as an upgrade of the driver does."""

import json
import os
import shutil
import subprocess
import sys

import pytest

LIBRARY = r"""
#include <string.h>
#include <unistd.h>
typedef struct { unsigned version; unsigned long long total, reserved, free, used; } memory_v2;
static int device;
static int code(void) { return OLD && access("upgraded", F_OK) == 0 ? 18 : 0; }
int nvmlInitWithFlags(unsigned flags) { return code(); }
int nvmlShutdown(void) { return code(); }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 1; return code(); }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **handle) { *handle = &device; return code(); }
int nvmlDeviceGetUUID(void *handle, char *uuid, unsigned size) { strncpy(uuid, "GPU-0", size); return code(); }
int nvmlDeviceGetMigMode(void *handle, unsigned *current, unsigned *pending) { return 3; }
int nvmlDeviceGetMemoryInfo_v2(void *handle, memory_v2 *memory) {
  if (memory->version != (sizeof *memory | 2 << 24)) return 25;
  memory->total = 110; memory->reserved = 10; memory->used = OLD ? 25 : 50; memory->free = 100 - memory->used;
  return code();
}
"""
PROCESS = """
import json, pathlib, shutil
from app.clock import ManualClock
from app.telemetry.device_memory import SourceDown
from app.telemetry.nvml import Nvml

clock = ManualClock()
nvml = Nvml(clock)

def told():
    try:
        return [[gpu.id, gpu.memory_ratio] for gpu in nvml.read()]
    except SourceDown as down:
        return down.problem

before = told()
pathlib.Path("new.so").replace("libnvidia-ml.so.1")
pathlib.Path("upgraded").touch()
during = told()
clock.advance(5000)
after = told()
nvml.close()
print(json.dumps([before, during, after]))
"""


@pytest.mark.skipif(shutil.which("cc") is None or sys.platform != "linux", reason="needs a C compiler on Linux")
def test_an_upgraded_driver_is_found_without_a_restart(tmp_path):
    """The old library says that it does not match any more, and the next try loads the new one, though both have one name."""
    (tmp_path / "nvml.c").write_text(LIBRARY)
    for file, old in (("libnvidia-ml.so.1", 1), ("new.so", 0)):
        options = ["-shared", "-fPIC", f"-DOLD={old}", "-Wl,-soname,libnvidia-ml.so.1"]
        subprocess.run(["cc", *options, "-o", file, "nvml.c"], cwd=tmp_path, check=True, timeout=60)

    environment = os.environ | {"LD_LIBRARY_PATH": str(tmp_path)}
    ran = subprocess.run(
        [sys.executable, "-c", PROCESS], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    assert json.loads(ran.stdout) == [[["GPU-0", 0.25]], "driver_mismatch", [["GPU-0", 0.5]]]
