"""Memory that holds keys is written nowhere."""

import subprocess
import sys

import pytest

PROGRAM = """
import ctypes, resource
from app import core_dumps
core_dumps.forbid()
print(resource.getrlimit(resource.RLIMIT_CORE), ctypes.CDLL(None).prctl(3, 0, 0, 0, 0))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="asks the kernel of Linux")
def test_a_process_that_forbids_them_leaves_no_dump():
    """Its limit of core files is 0, for good, and the kernel (PR_GET_DUMPABLE) says that it is not dumpable."""
    told = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)

    assert told.stdout == "(0, 0) 0\n"
