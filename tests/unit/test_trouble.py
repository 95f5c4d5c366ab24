"""Trouble is told once for each reason, and when it is over."""

from app.trouble import Trouble


def test_a_trouble_is_news_once_and_when_it_is_over():
    """An outage of hours is two lines of a log, and another reason is another line."""
    trouble = Trouble()

    assert [trouble.is_news(why) for why in ("no answer", "no answer", "disk full", "disk full")] == [True, False, True, False]
    assert trouble.lasts
    assert [trouble.over(), trouble.over()] == ["disk full", ""]
    assert not trouble.lasts
    assert trouble.is_news("disk full")
