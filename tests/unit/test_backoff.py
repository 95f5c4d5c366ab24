"""Pauses between tries."""

from app.backoff import Backoff


def test_pauses_grow_and_start_anew_after_a_calm_life():
    """The pause doubles from 0.2 s to 5 s; a child that lived 10 s begins again at 0.2 s."""
    backoff = Backoff()

    assert [backoff.after(0.1) for _ in range(7)] == [0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]
    assert [backoff.after(9.9), backoff.after(10.0), backoff.after(0.0)] == [5.0, 0.2, 0.4]


def test_what_went_well_begins_anew():
    """Who knows that a try went well need not know for how long."""
    backoff = Backoff()
    backoff.after()
    backoff.after()
    backoff.reset()

    assert [backoff.after(), backoff.after()] == [0.2, 0.4]
