"""Frozen and failing nodes, and the one probe that may look whether they live again."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from app.estimators.liveness import Evidence, Liveness

KEY = ("vllm-0", "llama-3-8b")
HOURS_MS = 10 * 3_600_000.0


def end(liveness: Liveness, now_ms: float, outcome: str = "failed") -> None:
    """A call that lasted 100 ms ends."""
    liveness.ended(KEY, outcome, 100.0, None, now_ms)


def frozen(now_ms: float = 60_000.0) -> Liveness:
    """A node that was judged frozen at `now_ms`."""
    liveness = Liveness()
    assert liveness.judge(KEY, Evidence(60_000.0, busy=True, in_flight=0), now_ms) == "frozen"
    return liveness


def failing(now_ms: float) -> Liveness:
    """A node whose calls failed from 3 s to 1 s before `now_ms`, while its idle page stood still."""
    liveness = Liveness()
    liveness.judge(KEY, Evidence(HOURS_MS, busy=False, in_flight=0), now_ms - 4000)
    for before_ms in (3000, 2500, 2000, 1500, 1000):
        end(liveness, now_ms - before_ms)
    assert liveness.judge(KEY, Evidence(HOURS_MS, busy=False, in_flight=0), now_ms) == "failing"
    return liveness


def test_a_busy_page_that_stands_still_is_frozen_after_5_s():
    """KV at 99 % and waiting requests that nothing moved for 5 s, with nothing of ours there, are no work but an old page."""
    liveness = Liveness()

    told = [liveness.judge(KEY, Evidence(still_ms, busy=True, in_flight=0), still_ms) for still_ms in (0.0, 4999.0, 5000.0, 60_000.0)]

    assert told == ["", "", "frozen", "frozen"]


def test_an_idle_page_may_stand_still_for_hours():
    """An engine without work refreshes nothing, and is live."""
    assert Liveness().judge(KEY, Evidence(HOURS_MS, busy=False, in_flight=0), HOURS_MS) == ""


def test_work_of_our_own_is_awaited():
    """A busy page that stands still for less than a minute while our own requests are there is not frozen: they will tell."""
    assert Liveness().judge(KEY, Evidence(59_999.0, busy=True, in_flight=1), 60_000.0) == ""


def test_work_of_our_own_is_not_awaited_for_ever():
    """One lease that is renewed for ever on a stuck engine: after a minute it is frozen and probed, and once a minute from then on."""
    liveness = Liveness()
    frozen_ms, probed_ms = [], []

    for still_ms in range(0, 200_000, 100):
        if liveness.judge(KEY, Evidence(float(still_ms), busy=True, in_flight=1), float(still_ms)) == "frozen":
            frozen_ms.append(still_ms)
        if liveness.take(KEY, float(still_ms)):
            probed_ms.append(still_ms)

    assert frozen_ms == list(range(60_000, 200_000, 100))
    assert probed_ms == [60_000, 120_000, 180_000]


def test_unknown_stillness_says_nothing():
    """Where nobody knows how long a page stood still, nothing speaks against the node."""
    assert Liveness().judge(KEY, Evidence(None, busy=True, in_flight=0), 60_000.0) == ""


def test_one_probe_at_once_and_one_every_10_s():
    """Of a hundred callers exactly one gets the probe of a frozen node, and the next one 10 s later."""
    liveness = frozen()

    assert sum(liveness.take(KEY, 60_000.0) for _ in range(100)) == 1
    assert not liveness.due(KEY, 69_999.0)
    assert liveness.due(KEY, 70_000.0)
    assert sum(liveness.take(KEY, 70_000.0) for _ in range(100)) == 1


def test_its_own_probe_does_not_make_a_node_live():
    """With the probe in flight a frozen node stays frozen until its page moves, else everybody would follow the probe."""
    liveness = frozen()
    liveness.take(KEY, 60_000.0)

    assert liveness.judge(KEY, Evidence(60_100.0, busy=True, in_flight=1), 60_100.0) == "frozen"
    assert liveness.judge(KEY, Evidence(50.0, busy=True, in_flight=1), 60_200.0) == ""


def test_a_page_that_moved_unseen_is_not_frozen_any_more():
    """A page that moved since the last judgement and stands still again under our own request is not the old freeze."""
    liveness = frozen()

    assert liveness.judge(KEY, Evidence(20_000.0, busy=True, in_flight=1), 90_000.0) == ""


def test_a_probe_that_nobody_settles_ends_with_its_lease():
    """While the probe is in flight there is no second one; with its lease over and 10 s gone, the next one is due."""
    liveness = frozen()
    liveness.take(KEY, 60_000.0)

    liveness.judge(KEY, Evidence(89_000.0, busy=True, in_flight=1), 89_000.0)
    assert not liveness.due(KEY, 89_000.0)
    liveness.judge(KEY, Evidence(90_000.0, busy=True, in_flight=0), 90_000.0)
    assert liveness.due(KEY, 90_000.0)


def test_a_lease_renewed_for_ever_does_not_shut_a_node_out():
    """A call that hangs there for ever keeps the next probe away for a minute, no longer."""
    liveness = frozen()
    liveness.take(KEY, 60_000.0)

    liveness.judge(KEY, Evidence(119_999.0, busy=True, in_flight=1), 119_999.0)
    assert not liveness.due(KEY, 119_999.0)
    assert liveness.due(KEY, 120_000.0)


def test_a_ticket_given_back_is_due_at_once():
    """A probe that was refused after all, by a quota say, leaves the node due for the next caller."""
    liveness = frozen()
    liveness.take(KEY, 60_000.0)
    liveness.give_back(KEY)

    assert liveness.take(KEY, 60_001.0)
    assert not liveness.take(KEY, 60_002.0)


def test_five_failures_under_a_still_page_are_failing():
    """The idle page of an engine whose calls fail one after the other attracts nobody but a probe."""
    liveness = failing(100_000.0)

    assert liveness.take(KEY, 100_000.0)
    assert not liveness.take(KEY, 100_000.0)


def test_failures_wait_for_a_page_read_since():
    """Five calls that fail at one moment speak against a node once a page was read after them, and not before."""
    liveness = Liveness()
    liveness.judge(KEY, Evidence(0.0, busy=False, in_flight=0), 0.0)
    for _ in range(5):
        end(liveness, 10_000.0)

    assert liveness.judge(KEY, Evidence(10_999.0, busy=False, in_flight=0), 10_999.0) == ""
    assert liveness.judge(KEY, Evidence(11_000.0, busy=False, in_flight=0), 11_000.0) == "failing"


def test_a_success_ends_the_failures():
    """Four failures, a success and four more are not five in a row; nor does a node fail any more whose probe succeeded."""
    liveness = Liveness()
    liveness.judge(KEY, Evidence(HOURS_MS, busy=False, in_flight=0), 0.0)
    for at_ms in range(9):
        end(liveness, at_ms, "completed" if at_ms == 4 else "failed")
    assert liveness.judge(KEY, Evidence(HOURS_MS, busy=False, in_flight=0), 5000.0) == ""

    liveness = failing(100_000.0)
    end(liveness, 100_000.0, "completed")
    assert liveness.judge(KEY, Evidence(HOURS_MS, busy=False, in_flight=0), 100_001.0) == ""


@pytest.mark.parametrize(
    ("lasted_ms", "still_ms", "why"),
    [
        (3000.0, 60_000.0, "failing"),
        (3000.0, 3000.0, "failing"),
        (3000.0, 2999.0, ""),  # something moved while the call was there
        (1000.0, 60_000.0, "failing"),
        (999.0, 60_000.0, ""),  # a client that hangs up at once
        (3000.0, None, ""),
    ],
)
def test_calls_given_up_count_where_nothing_moved_while_they_were_there(lasted_ms: float, still_ms: float | None, why: str):
    """Five clients in a row that gave up after a second or later, under a page that stood still all the while, speak against the node."""
    liveness = Liveness()
    liveness.judge(KEY, Evidence(HOURS_MS, busy=False, in_flight=0), 0.0)
    for at_ms in range(5):
        liveness.ended(KEY, "aborted", lasted_ms, still_ms, HOURS_MS + at_ms)

    assert liveness.judge(KEY, Evidence(HOURS_MS, busy=False, in_flight=0), HOURS_MS + 2000) == why


def test_a_call_given_up_neither_ends_nor_adds_to_failures():
    """Four failures, a client that hangs up at once and a fifth failure are five in a row."""
    liveness = Liveness()
    liveness.judge(KEY, Evidence(HOURS_MS, busy=False, in_flight=0), 0.0)
    for at_ms, outcome in enumerate(("failed", "timeout", "failed", "timeout", "aborted")):
        end(liveness, at_ms, outcome)
    assert liveness.judge(KEY, Evidence(HOURS_MS, busy=False, in_flight=0), 5000.0) == ""

    end(liveness, 5001.0)
    assert liveness.judge(KEY, Evidence(HOURS_MS, busy=False, in_flight=0), 7000.0) == "failing"


def test_failures_before_a_movement_are_forgotten():
    """A page that moved since the failures makes the node live; five more failures, all after that, speak against it again."""
    liveness = failing(100_000.0)
    assert liveness.judge(KEY, Evidence(10.0, busy=False, in_flight=0), 101_000.0) == ""

    for at_ms in (102_000, 102_100, 102_200, 102_300):
        end(liveness, at_ms)
    assert liveness.judge(KEY, Evidence(4010.0, busy=False, in_flight=0), 105_000.0) == ""
    end(liveness, 105_000)
    assert liveness.judge(KEY, Evidence(4110.0, busy=False, in_flight=0), 105_100.0) == "failing"


def test_leases_that_nobody_settles_make_nothing_failing():
    """A gateway that never reports leaves an idle node live, however many of its leases run out."""
    liveness = Liveness()

    told = {liveness.judge(KEY, Evidence(HOURS_MS, busy=False, in_flight=20 - place), place * 1000.0) for place in range(21)}

    assert told == {""}


def test_forgets_what_does_not_exist_any_more():
    """Keys that the configuration dropped are forgotten, and reports of unknown ones are not kept."""
    liveness = frozen()
    liveness.ended(("elsewhere", "llama-3-8b"), "failed", 100.0, None, 0.0)
    liveness.keep({("vllm-1", "llama-3-8b")})

    assert not liveness.due(KEY, 60_000.0)
    assert liveness._states == {}


class Node(RuleBasedStateMachine):
    """A node whose page moves or not, whose calls end or hang, judged after whatever happens."""

    @initialize(busy=st.booleans())
    def begin(self, busy: bool) -> None:
        self.liveness = Liveness()
        self.now_ms = self.moved_ms = 0.0
        self.busy = busy
        self.leases: list[float] = []
        self.run: list[float] = []
        self.tickets: list[float] = []
        self.judge()

    def judge(self) -> None:
        self.leases = [end_ms for end_ms in self.leases if end_ms > self.now_ms]
        before = getattr(self, "why", "")
        self.why = self.liveness.judge(KEY, Evidence(self.now_ms - self.moved_ms, self.busy, len(self.leases)), self.now_ms)
        self.run = [] if self.run and self.moved_ms >= self.run[0] else self.run
        failing = len(self.run) >= 5 and self.now_ms - self.run[0] >= 1000
        still_ms = self.now_ms - self.moved_ms
        frozen = self.busy and still_ms >= 5000 and (not self.leases or before == "frozen" or still_ms >= 60_000)
        assert self.why == ("failing" if failing else "frozen" if frozen else "")

    @rule(steps=st.integers(1, 150))
    def wait(self, steps: int) -> None:
        """Polls every 100 ms; a caller comes with each and takes the probe that is due."""
        for _ in range(steps):
            self.now_ms += 100.0
            self.judge()
            self.try_probe(callers=1)

    @rule(busy=st.booleans())
    def move(self, busy: bool) -> None:
        """The page moves: the node is live at once."""
        self.now_ms += 1.0
        self.moved_ms, self.busy = self.now_ms, busy
        self.judge()
        assert self.why == ""

    @rule()
    def call(self) -> None:
        """A call of ours that was there before, with a lease of 30 s."""
        if not self.why:
            self.leases.append(self.now_ms + 30_000.0)
            self.judge()

    @precondition(lambda self: self.leases)
    @rule(failed=st.sampled_from([True, True, True, False]))
    def end(self, failed: bool) -> None:
        """A call ends and its gateway says how."""
        self.now_ms += 1.0
        self.leases.pop()
        if failed:
            self.run.append(self.now_ms)
            end(self.liveness, self.now_ms)
        else:
            self.run.clear()
            end(self.liveness, self.now_ms, "completed")
        self.judge()

    @rule(failures=st.integers(1, 8))
    def refused(self, failures: int) -> None:
        """Calls that fail as soon as they are made."""
        if not self.why:
            self.run += [self.now_ms] * failures
            for _ in range(failures):
                end(self.liveness, self.now_ms)
            self.judge()

    @rule(callers=st.integers(1, 5), refused=st.booleans())
    def try_probe(self, callers: int, refused: bool = False) -> None:
        """Several callers at once: one of them gets the probe that is due; it may be refused after all."""
        due = self.liveness.due(KEY, self.now_ms)
        assert sum(self.liveness.take(KEY, self.now_ms) for _ in range(callers)) == due
        if due and refused:
            self.liveness.give_back(KEY)
            assert self.liveness.due(KEY, self.now_ms)
        elif due:
            assert not self.leases or not self.tickets or self.now_ms - self.tickets[-1] >= 60_000
            assert not self.tickets or self.now_ms - self.tickets[-1] >= 10_000
            self.tickets.append(self.now_ms)
            self.leases.append(self.now_ms + 30_000.0)
            self.judge()

    @invariant()
    def never_shut_out(self) -> None:
        """With nothing of ours there, a node that is not live was tried within the last 10 s, or is due now."""
        if self.why and not self.leases:
            tried = bool(self.tickets) and self.now_ms - self.tickets[-1] < 10_000
            assert tried or self.liveness.due(KEY, self.now_ms)
        if not self.why:
            assert not self.liveness.due(KEY, self.now_ms)


Node.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestNode = Node.TestCase
TestNode.__doc__ = "Never two probes within 10 s, never shut out for longer, live as soon as the page moves."
