"""What became of requests whose states are written down here; the C tests count the same ones (test_hedge.c)."""

from tunectl.experiments.hedge_states import State, counts_of

A, B = 1, 2
IN = State.CAME | State.ADMITTED
ANSWERED, HEDGED, WON, DONE, CANCELLED = State.ANSWERED, State.HEDGED, State.WON, State.DONE, State.CANCELLED
STATES = (
    IN | ANSWERED | DONE * A,
    State.CAME,  # shed
    IN,  # nowhere yet
    IN | ANSWERED | HEDGED | DONE * (A | B),  # the second copy lost
    IN | ANSWERED | HEDGED | DONE * (A | B) | WON,
    IN | ANSWERED | HEDGED | DONE * A | CANCELLED * B,
    IN | ANSWERED | HEDGED | DONE * B | CANCELLED * A | WON,
    IN | ANSWERED | HEDGED | DONE * A,  # the second copy is not back
    IN | ANSWERED | HEDGED | DONE * B | WON,
    IN | HEDGED,
    IN | ANSWERED | DONE * A | State.DENIED,
    IN | ANSWERED | DONE * A | State.OVER_BUDGET,
)
COUNTS = {
    "offered": 12, "answered": 9, "shed": 1, "unanswered": 2,
    "hedged": 7, "won": 3, "lost": 1, "hedge_cancelled": 1, "hedge_unfinished": 2,
    "denied": 1, "over_budget": 1, "wasted": 2, "cancelled_unstarted": 2, "unfinished": 5,
}  # fmt: skip


def test_each_request_and_each_copy_is_counted_once() -> None:
    assert counts_of([number for state in STATES for number in (int(state), 1)]) == COUNTS


def test_a_state_counts_as_often_as_it_came() -> None:
    often = counts_of([number for state in STATES for number in (int(state), 7)])
    assert often == {name: 7 * count for name, count in COUNTS.items()}


def test_the_first_copy_may_have_gone_to_either_server() -> None:
    to_b = [(1 << 16) | IN | ANSWERED | HEDGED | WON | DONE * A | CANCELLED * B, 1]  # the second one, at A, has won
    found = counts_of(to_b)
    assert (found["won"], found["cancelled_unstarted"], found["hedge_cancelled"], found["wasted"]) == (1, 1, 0, 0)


def test_nothing_counts_as_nothing() -> None:
    assert set(counts_of([]).values()) == {0}
