"""A fix is its text and its tasks: how the text is made of them, and what stays with it."""

import copy
import pickle

import pytest

from tunectl.command import argv
from tunectl.fix import (
    APPLY,
    NOTHING,
    REBOOT,
    Fix,
    Kind,
    add_words,
    apply,
    in_turn,
    noted,
    of_text,
    reboot,
    to_decide,
    to_type,
)

ONE, TWO, CHOOSE = to_type(argv("sudo", "one")), to_type(argv("sudo", "two"), "it was on"), to_decide("choose")


@pytest.mark.parametrize(
    ("fix", "text"),
    [
        (NOTHING, ""),
        (in_turn(ONE, TWO, CHOOSE), "sudo one; sudo two; it was on; choose"),
        (in_turn(ONE, APPLY, REBOOT), "sudo one && sudo tunectl apply, then reboot"),
        (in_turn(TWO, APPLY), "sudo two; it was on, then sudo tunectl apply"),  # a note is no part of a command
        (
            in_turn(noted(ONE, "it was on"), TWO, ONE),
            "sudo one; sudo two; it was on; sudo one",
        ),  # once, behind the last
        (in_turn(CHOOSE, APPLY), "choose, then sudo tunectl apply"),
        (apply("by hand: this"), "sudo tunectl apply; by hand: this"),
        (add_words("nohz_full=2"), "add nohz_full=2 to the kernel command line yourself, then reboot"),
        (reboot("into another entry"), "reboot into another entry"),
        (noted(in_turn(CHOOSE, ONE), "or not"), "choose; sudo one; or not"),
        (in_turn(NOTHING, ONE, CHOOSE, ONE), "sudo one; choose"),
    ],
)
def test_the_text_is_made_of_the_tasks(fix: Fix, text: str) -> None:
    assert str(fix) == text
    assert bool(fix) == bool(fix.tasks) == bool(text)


def test_the_tasks_go_wherever_the_text_goes() -> None:
    fix = in_turn(ONE, APPLY)
    assert [task.kind for task in fix.tasks] == [Kind.TYPE, Kind.APPLY]
    assert copy.deepcopy(fix).tasks == pickle.loads(pickle.dumps(fix)).tasks == fix.tasks


def test_a_text_alone_is_something_to_decide() -> None:
    assert of_text("sudo one").tasks == to_decide("sudo one").tasks
    assert [one.is_typed for one in (in_turn(ONE, TWO), in_turn(ONE, CHOOSE), APPLY)] == [True, False, False]
