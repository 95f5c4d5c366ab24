"""The board of the telemetry process: its generation grows with content, and waiting ends with it."""

import asyncio

from app.clock import ManualClock
from app.telemetry.board import PUBLISH_MS, Board
from app.telemetry.snapshot import Gpu, Loads, Node, Reading


def node(kv=0.5, problem=None):
    return Node("a", ("m",), readings={"m": Reading(kv_ratio=kv, waiting=1)}, problem=problem)


async def test_ages_are_durations_since_the_scrape():
    """A page taken 30 ms ago is 30 ms old, whenever it is asked for."""
    clock = ManualClock()
    board = Board(clock)
    board.put(node(), taken_ms=clock.monotonic_ms())
    clock.advance(30)
    assert board.snapshot().nodes[0].age_ms == 30.0

    board.put(node(problem="timeout"), taken_ms=None)
    clock.advance(5)
    assert (board.snapshot().nodes[0].age_ms, board.snapshot().nodes[0].problem) == (35.0, "timeout")


async def test_changes_close_together_make_one_generation():
    """Pages of many engines that arrive within a few milliseconds are published together, once."""
    board = Board(ManualClock())
    board.put(node(0.1), 0.0)
    board.put(node(0.2), 0.0)
    first = await board.beyond(1, wait_ms=5000)

    assert (first.generation, first.nodes[0].readings["m"].kv_ratio) == (2, 0.2)


async def test_a_change_after_a_quiet_time_is_published_at_once(monkeypatch):
    """Only a change that follows another closely waits, and no longer than until PUBLISH_MS after that."""
    clock, loop, waits_ms = ManualClock(), asyncio.get_running_loop(), []

    def soon(delay_s, callback):
        waits_ms.append(round(delay_s * 1000, 6))
        return loop.call_soon(callback)

    monkeypatch.setattr(loop, "call_later", soon)
    board = Board(clock)
    for number, pause_ms in enumerate([0, PUBLISH_MS, PUBLISH_MS - 15, 1000]):
        clock.advance(pause_ms)
        board.put(node(number / 10), clock.monotonic_ms())
        await asyncio.sleep(0)

    assert waits_ms == [0, 0, 15, 0]
    assert board.generation == 5


async def test_equal_content_makes_no_generation():
    """A page that says what the last one said wakes nobody; the wait ends by itself with fresh ages."""
    clock = ManualClock()
    board = Board(clock)
    board.put(node(), 0.0)
    await board.beyond(1, wait_ms=5000)
    clock.advance(50)
    board.put(node(), clock.monotonic_ms())
    again = await board.beyond(2, wait_ms=40)

    assert (again.generation, again.nodes[0].age_ms) == (2, 0.0)


async def test_durations_grow_without_a_generation():
    """A page that stands still makes no news, yet the next snapshot tells for how long it has."""
    board = Board(ManualClock())
    for still_ms in (0.0, 100.0):
        board.put(Node("a", ("m",), readings={"m": Reading(kv_ratio=0.5, still_ms=still_ms)}), still_ms)
        snapshot = await board.beyond(1, wait_ms=5000)

    assert (snapshot.generation, snapshot.nodes[0].readings["m"].still_ms) == (2, 100.0)


async def test_a_reader_that_is_behind_is_answered_at_once():
    """Another generation than the reader's, even a lower one after a restart, is news."""
    board = Board(ManualClock())
    assert (await board.beyond(0, wait_ms=60_000)).generation == 1
    assert (await board.beyond(900, wait_ms=60_000)).generation == 1


async def test_all_waiting_readers_wake():
    """One change answers every open poll."""
    board = Board(ManualClock())
    readers = [asyncio.create_task(board.beyond(1, wait_ms=60_000)) for _ in range(3)]
    await asyncio.sleep(0)
    board.put(node(), 0.0)

    assert [(await reader).generation for reader in readers] == [2, 2, 2]


async def test_a_removed_node_is_gone():
    """A node that is no longer configured leaves the snapshot, with a new generation."""
    board = Board(ManualClock())
    board.put(node(), 0.0)
    await board.beyond(1, wait_ms=5000)
    board.remove("a")

    assert (await board.beyond(2, wait_ms=5000)).nodes == ()


async def test_a_refused_file_is_told_at_once():
    """What became of the configuration files wakes whoever waits, as a new page does."""
    board = Board(ManualClock())
    board.report(Loads(refused=1, problem="kind"))

    assert (await board.beyond(1, wait_ms=5000)).loads == Loads(refused=1, problem="kind")


async def test_gpus_are_content_and_their_ages_are_not():
    """A new figure of memory makes a generation, the same one read again only a younger age; one never read has none."""
    clock = ManualClock()
    board = Board(clock)
    gpus = [Gpu("GPU-b", 4, 1, 0.25), Gpu("GPU-a", problem="lost")]
    board.put_gpus(gpus, {"GPU-b": 0.0})
    first = await board.beyond(1, wait_ms=5000)
    clock.advance(200)
    board.put_gpus(gpus, {"GPU-b": 190.0})
    again = await board.beyond(2, wait_ms=1)

    assert (first.generation, again.generation) == (2, 2)
    assert [(gpu.id, gpu.age_ms) for gpu in again.gpus] == [("GPU-a", None), ("GPU-b", 10.0)]
