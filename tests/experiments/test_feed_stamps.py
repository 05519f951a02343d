"""Whose stamps are taken, and why not the network card's: on values alone."""

import pytest

from tunectl.errors import TunectlError
from tunectl.experiments.feed import Chosen, choose
from tunectl.host.nics import Stamping

GOOD = Stamping("eth0", "/dev/ptp1", receive_filter="all")
KERNEL = Chosen(("--stamps", "sw"))
CARD = Chosen(("--stamps", "sw", "--phc", "/dev/ptp1"))
LACKS = [
    (Stamping("lo"), "lo has no clock (PHC) that could stamp packets"),
    (
        GOOD._replace(receive_filter="", filter_error="Operation not supported"),
        "which packets eth0 stamps cannot be read",
    ),
    (GOOD._replace(receive_filter="none"), "eth0 stamps none of the packets that it receives"),
    (GOOD._replace(receive_filter="a few"), "(`hwstamp_ctl -i eth0 -r 1` makes it stamp all, not beside chrony"),
    (
        GOOD._replace(clock_error="Permission denied"),
        "the card's stamps are not comparable: /dev/ptp1, the clock of eth0, cannot be read: Permission denied",
    ),
]


@pytest.mark.parametrize(
    ("asked", "card", "chosen"),
    [
        ("off", GOOD, Chosen(("--stamps", "off"))),
        ("sw", GOOD, KERNEL),
        ("hw", GOOD, CARD),
        ("auto", GOOD, CARD),
        ("auto", None, KERNEL),
        ("auto", Stamping("veth0"), KERNEL),
    ],
)
def test_the_cards_stamps_where_they_can_be_had(asked: str, card: Stamping | None, chosen: Chosen) -> None:
    assert choose(asked, card) == chosen


@pytest.mark.parametrize(("card", "said"), LACKS)
def test_what_is_lacking_is_one_line(card: Stamping, said: str) -> None:
    with pytest.raises(TunectlError) as caught:
        choose("hw", card)
    assert str(caught.value).startswith("--stamps hw: ")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("card", "said"), LACKS[1:])
def test_auto_says_why_a_card_with_a_clock_was_not_asked(card: Stamping, said: str) -> None:
    chosen = choose("auto", card)
    assert chosen.words == KERNEL.words
    assert chosen.note.startswith("the kernel's time stamps, and not the card's: ")
    assert said in chosen.note
