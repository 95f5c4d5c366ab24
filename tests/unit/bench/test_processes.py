"""CPU time of a process tree, as the benchmark counts it."""

import os
import subprocess
import sys

from bench.processes import TICKS_PER_S, cpu_s, own_cpu_s, resident_mb, tree

TICK_S = 1 / TICKS_PER_S
BURN = "sum(range(8_000_000)); print('done', flush=True); input()"


def test_children_count_as_the_parents_own() -> None:
    """What a child spent is part of the tree's CPU time while it runs and after it has ended, and never of its parent's alone."""
    before, own = cpu_s(os.getpid()), own_cpu_s(os.getpid())
    with subprocess.Popen([sys.executable, "-c", BURN], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout
        child.stdout.readline()
        spent = cpu_s(child.pid)
        while_it_runs = cpu_s(os.getpid())
        assert child.pid in tree(os.getpid())
        child.communicate(b"\n")

    whole, alone = cpu_s(os.getpid()) - before, own_cpu_s(os.getpid()) - own
    assert spent > 0
    assert while_it_runs - before > spent - TICK_S
    assert whole > spent - TICK_S
    assert alone < whole - spent + 2 * TICK_S
    assert child.pid not in tree(os.getpid())


def test_resident_memory_is_in_megabytes() -> None:
    """A Python process takes some, and less than a thousand."""
    assert 5 < resident_mb(os.getpid()) < 1000
