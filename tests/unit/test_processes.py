"""Children are started, watched, restarted and stopped as promised; the programs are real and short."""

import asyncio
import os
import shutil
import signal
import sys
import threading

import pytest
from structlog.testing import capture_logs

from app.child_output import LINE_BYTES
from app.clock import ManualClock, SystemClock
from app.processes import ChildFailed, Launcher
from tests.fixtures.waiting import until

IGNORES_TERM = "trap '' TERM; echo up; while :; do sleep 0.05; done"


def shell(script: str) -> list[str]:
    return ["bash", "-c", script]


@pytest.fixture
async def launcher():
    launcher = Launcher(SystemClock())
    yield launcher
    await launcher.stop_all(timeout_s=0.5)


async def test_output_is_logged_line_by_line(launcher):
    """Each line of either stream becomes one event with the child's name, the last one also without a newline."""
    with capture_logs() as events:
        child = await launcher.start("talker", shell("echo one; echo two >&2; printf three"))
        code = await child.wait()

    assert code == 0
    assert [event["line"] for event in events if event["event"] == "child_line"] == ["one", "two", "three"]
    assert {event["child"] for event in events} == {"talker"}
    assert list(child.tail) == ["one", "two", "three"]


async def test_a_line_without_end_is_cut(launcher):
    """A child that never ends its line does not fill our memory."""
    child = await launcher.start("endless", [sys.executable, "-c", "print('x' * 100_000, end='')"])
    await child.wait()

    assert max(len(line) for line in child.tail) == LINE_BYTES


async def test_bytes_that_are_not_text_are_replaced(launcher):
    """Output that is no UTF-8 is logged all the same."""
    child = await launcher.start("binary", shell(r"printf 'a\xffb\n'"))
    await child.wait()

    assert list(child.tail) == ["a\N{REPLACEMENT CHARACTER}b"]


async def test_a_line_that_is_structured_already_is_passed_on(launcher):
    """A child that logs as we do is heard in its own words and at its own level, not wrapped in a line of ours."""
    line = '{"event": "scrape.failed", "level": "warning", "node": "a", "process": "telemetry", "timestamp": "2026-01-02T03:04:05Z"}'
    with capture_logs() as events:
        child = await launcher.start("telemetry", shell(f"echo '{line}'"))
        await child.wait()

    assert events[-1] == {
        "event": "scrape.failed",
        "log_level": "warning",
        "child": "telemetry",
        "node": "a",
        "process": "telemetry",
        "timestamp": "2026-01-02T03:04:05Z",
    }


async def test_what_a_child_says_while_it_is_stopped_is_no_news(launcher):
    """Between the signal and its end a child's lines, errors too, are for debugging only; an orderly end warns of nothing."""
    script = """trap 'echo bye; echo "{\\"level\\":\\"error\\",\\"msg\\":\\"cut\\"}"; exit' TERM; echo up; while :; do sleep 0.01; done"""
    with capture_logs() as events:
        child = await launcher.start("opa", shell(script))
        await until(lambda: "up" in child.tail)
        await child.stop()

    said = [(event.get("line", event["event"]), event["log_level"]) for event in events if event["event"] in ("child_line", "cut")]
    assert said == [("up", "info"), ("bye", "debug"), ("cut", "debug")]
    assert [event for event in events if event["log_level"] == "warning"] == []


async def test_a_bad_end_is_told_with_its_last_lines(launcher):
    """A child that fails while it ends says why in the log, though its lines were for debugging only."""
    with capture_logs() as events:
        child = await launcher.start("database", shell("trap 'echo disk full; exit 7' TERM; echo up; while :; do sleep 0.01; done"))
        await until(lambda: "up" in child.tail)
        await child.stop()

    assert [event for event in events if event["event"] == "child_ended_badly"] == [
        {"event": "child_ended_badly", "log_level": "warning", "child": "database", "code": 7, "tail": ["up", "disk full"]}
    ]


async def test_environment_and_folder_are_as_asked(launcher, tmp_path):
    """A child that is given an environment sees nothing of ours."""
    os.environ["SLUICE_TEST_SECRET"] = "ours"
    try:
        child = await launcher.start("env", ["/usr/bin/env", "-u", "_", "sh", "-c", "env; pwd"], env={"ONLY": "this"}, cwd=tmp_path)
        await child.wait()
    finally:
        del os.environ["SLUICE_TEST_SECRET"]

    assert "ONLY=this" in child.tail
    assert str(tmp_path) in child.tail
    assert not [line for line in child.tail if "SECRET" in line]


async def test_a_program_that_is_not_there_is_named(launcher):
    """A missing program is a ChildFailed that says which and why."""
    with pytest.raises(ChildFailed, match=r"ghost did not start: .*No such file.*/nowhere/ghost"):
        await launcher.start("ghost", ["/nowhere/ghost"])


async def test_an_end_before_ready_is_told_with_its_last_lines(launcher):
    """A child that ends instead of becoming ready is not waited for, and its own words are in the error."""
    with pytest.raises(ChildFailed, match=r"server ended with code 3: port taken"):
        await launcher.start("server", shell("echo port taken; exit 3"), ready=lambda _: asyncio.Event().wait())


async def test_ready_is_waited_for(launcher):
    """Start returns once `ready` has."""
    child = await launcher.start("server", shell("echo up; sleep 60"), ready=lambda child: until(lambda: "up" in child.tail))

    assert child.returncode is None
    assert list(child.tail) == ["up"]


async def test_stop_sends_the_childs_own_signal(launcher):
    """A child is asked to end with the signal that means good order to it."""
    child = await launcher.start(
        "server", shell("trap 'echo bye; exit 7' INT; echo up; while :; do sleep 0.01; done"), stop_signal=signal.SIGINT
    )
    await until(lambda: "up" in child.tail)

    assert await child.stop() == 7
    assert list(child.tail) == ["up", "bye"]
    assert await child.stop() == 7


async def test_stop_ends_a_child_that_ignores_the_signal(launcher):
    """A child that ignores SIGTERM is killed after the time-out, its grandchildren with it."""
    child = await launcher.start("stubborn", shell(f"sleep 61 & echo $!; {IGNORES_TERM}"))
    await until(lambda: "up" in child.tail)
    grandchild = int(child.tail[0])

    assert await child.stop(timeout_s=0.1) == -signal.SIGKILL
    await until(lambda: not is_running(grandchild))


async def test_all_are_stopped_newest_first():
    """What was started last may lean on what was started before it, so it goes first."""
    launcher = Launcher(SystemClock())
    with capture_logs() as events:
        for name in ("database", "opa", "telemetry"):
            child = await launcher.start(name, shell("trap 'echo bye; exit' TERM; echo up; while :; do sleep 0.01; done"))
            await until(lambda child=child: "up" in child.tail)
        await launcher.stop_all()

    assert [event["child"] for event in events if event.get("line") == "bye"] == ["telemetry", "opa", "database"]


async def test_children_that_ignore_it_share_one_time_limit():
    """However many children ignore their signal, stopping all takes about the time given, not that time for each."""
    launcher = Launcher(SystemClock())
    for name in ("one", "two"):
        child = await launcher.start(name, shell(IGNORES_TERM))
        await until(lambda child=child: "up" in child.tail)
    with capture_logs() as events:
        await launcher.stop_all(timeout_s=0.7)

    waits = {event["child"]: event["after_s"] for event in events if event["event"] == "child_killed"}
    assert waits["two"] == pytest.approx(0.7, abs=0.01)
    assert waits["one"] == 0.5


async def test_a_kept_child_is_started_again():
    """A child that dies is started again, and each death is logged with its code and last lines."""
    pauses = []

    async def sleep(seconds):
        pauses.append(seconds)
        await asyncio.sleep(0)

    launcher = Launcher(ManualClock(), sleep)
    with capture_logs() as events:
        kept = await launcher.keep("fragile", shell("echo broken; exit 4"))
        await until(lambda: kept.restarts >= 7)
        await launcher.stop_all()

    deaths = [event for event in events if event["event"] == "child_died"]
    assert pauses[:7] == [0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]
    assert deaths[0] == {
        "event": "child_died",
        "log_level": "error",
        "child": "fragile",
        "code": 4,
        "restart_in_s": 0.2,
        "tail": ["broken"],
    }


async def test_an_end_in_good_order_is_no_error():
    """A child that somebody asked to end is started again all the same, and that is worth a warning."""
    launcher = Launcher(ManualClock(), lambda _: asyncio.sleep(0))
    with capture_logs() as events:
        kept = await launcher.keep("obedient", shell("exit 0"))
        await until(lambda: kept.restarts >= 1)
        await launcher.stop_all()

    assert next(event["log_level"] for event in events if event["event"] == "child_died") == "warning"


async def test_a_start_that_fails_is_tried_again(tmp_path):
    """A program that is gone at a restart, as in the middle of an upgrade, is started once it is back."""
    program = tmp_path / "program"
    program.symlink_to(str(shutil.which("true")))
    changes = iter([program.unlink, lambda: program.symlink_to(str(shutil.which("sleep")))])

    async def pause(_: float) -> None:
        next(changes)()

    launcher = Launcher(ManualClock(), pause)
    kept = await launcher.keep("upgraded", [program, "62"])
    first = kept.child.pid
    await until(lambda: kept.restarts == 1)

    assert kept.child.pid != first
    assert is_running(kept.child.pid)
    await launcher.stop_all()


async def test_a_stopped_child_stays_stopped():
    """Stopping ends the restarts too, also in the middle of a pause."""
    launcher = Launcher(ManualClock(), lambda _: asyncio.Event().wait())
    kept = await launcher.keep("fragile", shell("exit 5"))
    await kept.child.wait()

    assert await kept.stop() == 5
    assert kept.restarts == 0


async def test_another_thread_may_not_start_children():
    """A child started by another thread would die with that thread, so it is refused."""
    refused = []

    def in_thread():
        try:
            asyncio.run(Launcher(SystemClock()).start("child", ["sleep", "63"]))
        except RuntimeError as error:
            refused.append(str(error))

    thread = threading.Thread(target=in_thread)
    thread.start()
    thread.join()

    assert refused == ["children start from the main thread only"]


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_what_children_worked_with_is_cleared_after_the_last_has_ended(launcher):
    """Each is cleared once, the newest first, and none while a child runs."""
    child, cleared = await launcher.start("sleeper", shell("sleep 60")), []
    for name in ("a", "b"):
        launcher.afterwards(lambda name=name: cleared.append((name, child.returncode is not None)))
    await launcher.stop_all(timeout_s=0.5)
    await launcher.stop_all(timeout_s=0.5)

    assert cleared == [("b", True), ("a", True)]


async def test_a_run_ends_well_or_says_how_not(launcher):
    """A child that is run once is waited for, and its failure has its code and last lines; nothing of it is kept."""
    await launcher.run("fine", shell("true"))
    with pytest.raises(ChildFailed, match=r"bad ended with code 3: no luck"):
        await launcher.run("bad", shell("echo no luck; exit 3"))
    assert launcher._held == []


async def test_who_stops_waiting_for_a_run_ends_it(launcher):
    """Cancelled, the child is stopped, even one that ignores it."""
    with capture_logs() as events:
        run = asyncio.create_task(launcher.run("endless", shell(IGNORES_TERM), stop_s=0.2))
        await until(lambda: any(event["event"] == "child_line" for event in events))
        (child,) = launcher._held
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
    assert child.returncode == -signal.SIGKILL
    assert launcher._held == []
