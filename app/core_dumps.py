"""No memory image of a process that holds private keys: no core dump, and no other process of the same user may read along.

When down: where the system refuses, the command that asked for it does not run.
"""

import ctypes
import os
import resource
import sys

from app.errors import ConfigError

PR_SET_DUMPABLE = 4  # from <sys/prctl.h>


def forbid() -> None:
    """Make this process undumpable for the rest of its life. Raises ConfigError."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform != "linux":
        return  # elsewhere the limit is all there is
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0:
        why = os.strerror(ctypes.get_errno())
        raise ConfigError(
            f"the kernel does not let this process forbid dumps of its memory: {why}", hint="Allow prctl in its seccomp profile."
        )
