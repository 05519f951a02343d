"""Whose receive stamps a run of `feed` takes: the network card's, the kernel's, or none. Pure."""

from __future__ import annotations

from typing import NamedTuple

from tunectl.errors import TunectlError
from tunectl.host.timestamping import ALL, Stamping

STAMPS = ("auto", "sw", "hw", "off")
OFF, _KERNEL = ("--stamps", "off"), ("--stamps", "sw")
_WITHOUT = "the kernel's: --stamps sw"


class Chosen(NamedTuple):
    """The program's arguments, and what has to be said of the choice; "" where nothing."""

    words: tuple[str, ...]
    note: str = ""


def choose(asked: str, card: Stamping | None) -> Chosen:
    """Of STAMPS; `card` is the interface of a connection to another host. TunectlError where hw cannot be had."""
    if asked == "off":
        return Chosen(OFF)
    if asked == "sw" or card is None:
        return Chosen(_KERNEL)
    lack, way_out = _lack(card)
    if not lack:
        return Chosen((*_KERNEL, "--phc", card.clock))
    if asked == "hw":
        raise TunectlError(f"--stamps hw: {lack}", way_out)
    return Chosen(_KERNEL, f"the kernel's time stamps, and not the card's: {lack} ({way_out})" if card.clock else "")


def _lack(card: Stamping) -> tuple[str, str]:
    """Why the card's stamps cannot be had, and what would help; "" where they can."""
    nic = card.nic
    if not card.clock:
        return f"{nic} has no clock (PHC) that could stamp packets", _WITHOUT
    if card.filter_error:
        return f"which packets {nic} stamps cannot be read: {card.filter_error}", _WITHOUT
    if card.receive_filter != ALL:
        theirs = f"not beside chrony (there: hwtimestamp {nic} rxfilter all) or ptp4l (hwts_filter full)"
        way_out = f"`hwstamp_ctl -i {nic} -r 1` makes it stamp all, {theirs}"
        return f"{nic} stamps {card.receive_filter} of the packets that it receives, and all are needed", way_out
    if card.clock_error:
        clock = f"{card.clock}, the clock of {nic}, cannot be read: {card.clock_error}"
        return f"the card's stamps are not comparable: {clock}", "run it as root"
    return "", ""
