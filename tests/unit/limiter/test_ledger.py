"""How much a refund may be: against a list of every charge, as random histories of one bucket go."""

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from app.limiter import gcra
from app.limiter.ledger import SLOTS_A_WINDOW, WINDOWS_KEPT, Ledger

WINDOW_MS = 1600.0
NEAR_MS = 1e-6


@dataclass
class Charged:
    admitted_ms: float
    price_ms: float


def exact_refund(charges: list[Charged], index: int, wanted_ms: float, tat_ms: float, now_ms: float) -> float:
    """What leaves the bucket where a full one would be by the charges after that one."""
    least_ms, since_ms = now_ms, 0.0
    for charge in reversed(charges[index + 1 :]):
        since_ms += charge.price_ms
        least_ms = max(least_ms, charge.admitted_ms + since_ms)
    return max(0.0, min(wanted_ms, tat_ms - least_ms))


@given(
    st.lists(
        st.tuples(
            st.sampled_from([0, 1, 30, 100, 250, 900]), st.integers(1, 1600), st.none() | st.tuples(st.integers(0, 50), st.floats(0, 1))
        ),
        max_size=80,
    )
)
def test_a_refund_is_never_too_much_and_little_too_little(steps: list[tuple[int, int, tuple[int, float] | None]]) -> None:
    """A refund is at most the exact one and, within two windows, at least that less a sixteenth of a window; and so no stretch passes too much."""
    ledger, charges, tat_ms, now_ms = Ledger(), list[Charged](), 0.0, 0.0
    for gap_ms, cost_ms, refund in steps:
        now_ms += gap_ms
        if refund is None or not charges:
            if gcra.fits(gcra.used_ms(tat_ms, now_ms), cost_ms, WINDOW_MS):
                tat_ms = gcra.take(tat_ms, now_ms, cost_ms, WINDOW_MS)
                ledger.admit(cost_ms, now_ms, WINDOW_MS)
                charges.append(Charged(now_ms, cost_ms))
        else:
            index = len(charges) - 1 - refund[0] % len(charges)
            charge, wanted_ms = charges[index], charges[index].price_ms * refund[1]
            exact_ms = exact_refund(charges, index, wanted_ms, tat_ms, now_ms)
            given_ms = ledger.refund(wanted_ms, charge.price_ms, charge.admitted_ms, tat_ms, now_ms)
            assert given_ms <= exact_ms + NEAR_MS
            if now_ms - charge.admitted_ms <= WINDOWS_KEPT * WINDOW_MS:
                assert given_ms >= exact_ms - WINDOW_MS / SLOTS_A_WINDOW - NEAR_MS
            tat_ms -= given_ms
            charge.price_ms -= given_ms
    for first in range(len(charges)):
        passed_ms = 0.0
        for charge in charges[first:]:
            passed_ms += charge.price_ms
            assert passed_ms <= WINDOW_MS + charge.admitted_ms - charges[first].admitted_ms + 1.0


def test_slots_are_bounded() -> None:
    """However many charges come, and however long, two windows of slots are kept."""
    ledger = Ledger()
    for step in range(100_000):
        ledger.admit(1.0, step * 7.0, WINDOW_MS)
    assert len(ledger) <= WINDOWS_KEPT * SLOTS_A_WINDOW + 2


def test_a_charge_that_is_not_listed_gets_nothing_back() -> None:
    """A charge of before the first slot, or between two, is none of this ledger's."""
    ledger = Ledger()
    ledger.admit(10.0, 1000.0, WINDOW_MS)
    ledger.admit(10.0, 2000.0, WINDOW_MS)
    assert [ledger.refund(10.0, 10.0, at_ms, 2020.0, 2000.0) for at_ms in (999.0, 1500.0, 2001.0)] == [0.0, 0.0, 0.0]


def test_what_a_charge_costs_besides_can_be_given_back() -> None:
    """A charge of 10, earned, and charged 5 more at 30 gets these 5 back and no more."""
    ledger = Ledger()
    ledger.admit(10.0, 0.0, WINDOW_MS)
    ledger.charge(0.0, 5.0)
    assert ledger.refund(15.0, 15.0, 0.0, 35.0, 30.0) == 5.0
    assert ledger.refund(10.0, 10.0, 0.0, 30.0, 30.0) == 0.0
