"""The pure scheduler: blocks are conserved, order is kept, preemption computes again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.simulator.scheduler import Scheduler, Sequence


def scheduler(blocks=8, block_size=4, max_num_seqs=8, prefill_steps=1):
    return Scheduler(blocks, block_size, max_num_seqs, prefill_steps)


def test_one_token_a_step_until_the_last():
    """A sequence alone gets one token in each step, and its blocks are free after the last."""
    engine = scheduler()
    engine.add(Sequence("a", prompt_tokens=6, max_tokens=3))

    steps = [engine.step() for _ in range(3)]

    assert [step.emitted for step in steps] == [("a",)] * 3
    assert [step.finished for step in steps] == [(), (), ("a",)]
    assert [step.computed_tokens for step in steps] == [6, 1, 1]
    assert engine.free_blocks == 8


def test_blocks_follow_tokens():
    """Six tokens in blocks of four hold two blocks of eight, a quarter of the cache."""
    engine = scheduler()
    engine.add(Sequence("a", prompt_tokens=6, max_tokens=3))
    engine.step()

    assert engine.kv_ratio == 0.25


def test_prefill_is_spread_over_its_steps():
    """With five prefill steps the first token of a ten-token prompt comes in the fifth step."""
    engine = scheduler(prefill_steps=5)
    engine.add(Sequence("a", prompt_tokens=10, max_tokens=2))

    steps = [engine.step() for _ in range(6)]

    assert [step.computed_tokens for step in steps] == [2, 2, 2, 2, 2, 1]
    assert [step.emitted for step in steps] == [(), (), (), (), ("a",), ("a",)]


def test_later_sequences_join_a_running_batch():
    """Batching is continuous: a newcomer starts in the next step, and a waiting one as soon as a place is free."""
    engine = scheduler(max_num_seqs=2)
    engine.add(Sequence("a", 1, 4))
    first = engine.step()
    engine.add(Sequence("b", 1, 2))
    engine.add(Sequence("c", 1, 1))
    rest = [engine.step() for _ in range(3)]

    assert first.emitted == ("a",)
    assert [step.emitted for step in rest] == [("a", "b"), ("a", "b"), ("a", "c")]


def test_a_smaller_batch_admits_nobody_until_there_is_a_place():
    """Below what runs, running sequences go on to their end and the next is admitted only under the new size."""
    engine = scheduler(max_num_seqs=3)
    for name, most in (("a", 3), ("b", 4), ("c", 5), ("d", 1)):
        engine.add(Sequence(name, 1, most))
    first = engine.step()
    engine.max_num_seqs = 2
    rest = [engine.step() for _ in range(4)]

    assert first.emitted == ("a", "b", "c")
    assert [step.emitted for step in rest] == [("a", "b", "c"), ("a", "b", "c"), ("b", "c"), ("c", "d")]


def test_a_larger_batch_admits_in_the_next_step():
    """A batch that grows takes waiting sequences in the very next step."""
    engine = scheduler(max_num_seqs=1)
    engine.add(Sequence("a", 1, 9))
    engine.add(Sequence("b", 1, 9))
    engine.step()
    engine.max_num_seqs = 2

    assert engine.step().emitted == ("a", "b")


def test_the_youngest_gives_way_when_blocks_run_out():
    """Two sequences that together outgrow the cache: the younger is preempted, computed again later, and both finish."""
    engine = scheduler(blocks=3, block_size=2)
    engine.add(Sequence("old", prompt_tokens=2, max_tokens=3))
    engine.add(Sequence("young", prompt_tokens=2, max_tokens=3))

    steps = [engine.step() for _ in range(6)]

    assert [name for step in steps for name in step.preempted] == ["young"]
    assert [step.finished for step in steps if step.finished] == [("old",), ("young",)]
    assert engine.free_blocks == 3


def test_abort_frees_blocks_of_running_and_waiting():
    """An aborted sequence leaves nothing behind, wherever it was."""
    engine = scheduler(max_num_seqs=1)
    engine.add(Sequence("running", 8, 8))
    engine.add(Sequence("waiting", 8, 8))
    engine.step()

    assert engine.abort(["running", "waiting", "unknown"]) == ("running", "waiting")
    assert (engine.free_blocks, engine.running, engine.waiting) == (8, 0, 0)


def test_what_never_fits_is_refused_at_the_door():
    """A sequence longer than the whole cache is refused: it would block the queue for ever."""
    with pytest.raises(ValueError, match="max_tokens: 20 \\+ 13 tokens exceed the cache of 32"):
        scheduler().add(Sequence("a", 20, 13))


def test_a_step_tells_who_was_admitted_and_what_the_batch_may_grow_to():
    """Admission is told when it happens, after a preemption once more; the batch at its longest is all of its tokens to come."""
    engine = scheduler(blocks=3, block_size=2)
    engine.add(Sequence("old", prompt_tokens=2, max_tokens=3))
    engine.add(Sequence("young", prompt_tokens=2, max_tokens=3))

    steps, longest = [], []
    for _ in range(4):
        steps.append(engine.step())
        longest.append(engine.longest_tokens)

    assert [step.admitted for step in steps] == [("old", "young"), (), (), ("young",)]
    assert longest == [10, 5, 0, 5]


def test_blocks_of_a_step_are_those_of_its_peak():
    """A step tells the blocks that the model needed, also where its sequences end with it."""
    engine = scheduler()
    engine.add(Sequence("a", prompt_tokens=8, max_tokens=1))
    step = engine.step()

    assert (step.used_blocks, engine.used_blocks) == (2, 0)


@given(sizes=st.lists(st.integers(1, 6), min_size=1, max_size=30), longest=st.lists(st.integers(1, 9), min_size=1, max_size=30))
def test_no_size_of_the_batch_is_exceeded_by_an_admission(sizes, longest):
    """However the size moves, a step admits up to it and never beyond, and nobody who runs is put out for it."""
    engine = scheduler(blocks=1000)
    for number, most in enumerate(longest):
        engine.add(Sequence(f"s{number}", 1, most))
    for size in sizes:
        engine.max_num_seqs = size
        before, waiting = engine.running, engine.waiting
        step = engine.step()
        assert len(step.admitted) == min(waiting, max(0, size - before))
        assert len(step.emitted) == before + len(step.admitted)


@given(
    blocks=st.integers(1, 12),
    block_size=st.integers(1, 5),
    max_num_seqs=st.integers(1, 5),
    prefill_steps=st.integers(1, 4),
    arrivals=st.lists(st.tuples(st.integers(1, 12), st.integers(1, 12), st.integers(0, 9)), max_size=12),
    aborts=st.sets(st.integers(0, 11)),
)
def test_blocks_are_conserved(*, blocks, block_size, max_num_seqs, prefill_steps, arrivals, aborts):
    """Free blocks never leave 0..total, every sequence that fits finishes or is aborted, and all blocks come back."""
    engine = Scheduler(blocks, block_size, max_num_seqs, prefill_steps)
    fitting = {f"s{n}": a for n, a in enumerate(arrivals) if a[0] + a[1] <= engine.capacity_tokens}
    finished, emitted = set(), dict.fromkeys(fitting, 0)
    for now in range(2000):
        for name, (prompt, most, arrives) in fitting.items():
            if arrives == now:
                engine.add(Sequence(name, prompt, most))
        if now == 5:
            finished |= set(engine.abort([f"s{n}" for n in aborts]))
        step = engine.step()
        for name in step.emitted:
            emitted[name] += 1
        finished |= set(step.finished)
        assert 0 <= engine.free_blocks <= blocks
        assert engine.running <= max_num_seqs
        if now > 9 and not engine.running and not engine.waiting:
            break

    assert set(fitting) == finished
    assert blocks == engine.free_blocks
    assert all(emitted[name] <= fitting[name][1] for name in fitting)
