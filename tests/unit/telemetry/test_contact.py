"""Trouble is told once for each kind; who may be starting is given time."""

import pytest

from app.clock import ManualClock
from app.telemetry.contact import FIRST_CONTACT_MS, REMIND_MS, Contact, Reminder


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def contact(clock):
    return Contact(clock)


def test_a_start_is_waited_for(clock, contact):
    """Silence before the first contact is no news for five seconds, and then it is, once."""
    assert [contact.unheard("connect") for _ in range(3)] == [False, False, False]
    clock.advance(FIRST_CONTACT_MS - 1)
    assert not contact.unheard("connect")
    clock.advance(1)

    assert [contact.unheard("connect") for _ in range(3)] == [True, False, False]


def test_silence_after_contact_is_news_at_once(contact):
    """Who has answered and falls silent is told of; each other kind of trouble is told as well, and again after it was over."""
    assert not contact.heard()

    assert [contact.unheard(why) for why in ("connect", "connect", "timeout", "timeout")] == [True, False, True, False]
    assert not contact.heard()
    assert contact.unheard("timeout")


def test_a_wrong_answer_is_contact(contact):
    """An answer that lacks something is news from the first one on, and ends the wait for a start."""
    assert [contact.heard("missing:kv") for _ in range(2)] == [True, False]
    assert contact.unheard("connect")
    assert contact.heard("missing:kv")


def test_trouble_that_goes_on_is_told_once_a_minute(clock):
    """Each kind at once, then after a minute again, however often it is asked in between."""
    reminder = Reminder(clock)
    assert [reminder.due("nvml", "lost"), reminder.due("nvml", "lost"), reminder.due("nvml", "timeout")] == [True, False, True]
    clock.advance(REMIND_MS - 1)
    assert not reminder.due("nvml", "lost")
    clock.advance(1)
    assert [reminder.due("nvml", "lost"), reminder.due("nvml", "lost")] == [True, False]
