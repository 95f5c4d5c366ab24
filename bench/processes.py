"""CPU time and memory of a process and of everything it started, as the kernel counts them."""

import os
from pathlib import Path

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
PPID, UTIME, CUTIME, CUTIME_END = 1, 11, 13, 15
"""Places in /proc/PID/stat behind the name: parent; user, system, and both of children that ended."""


def tree(root: int) -> list[int]:
    """`root` and all its descendants that run."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and (stat := _stat(int(entry.name))):
            parents[int(entry.name)] = int(stat[PPID])
    found = [root]
    for pid in found:
        found += [child for child, parent in parents.items() if parent == pid]
    return found


def cpu_s(root: int) -> float:
    """CPU seconds spent by `root` and its descendants so far, those that ended included."""
    ticks = 0
    for pid in tree(root):
        ticks += sum(map(int, _stat(pid)[UTIME:CUTIME_END]))
    return ticks / TICKS_PER_S


def own_cpu_s(pid: int) -> float:
    """CPU seconds spent by one process alone so far."""
    return sum(map(int, _stat(pid)[UTIME:CUTIME])) / TICKS_PER_S


def resident_mb(pid: int) -> float:
    """Resident memory of one process, in MB (10^6 bytes)."""
    status = Path(f"/proc/{pid}/status").read_text("ascii", errors="replace")
    (line,) = (line for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) * 1024 / 1e6


def _stat(pid: int) -> list[str]:
    """The fields behind the name, which may hold anything; none where the process is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text("ascii", errors="replace").rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []
