"""A card's own clock, ptp4l and phc2sys on a real kernel: what is said of the system's clock that they keep."""

import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .lab import PREFIX, Lab
from .test_cards_lab import EXPRESS

PROGRAMS = ("ptp4l", "phc2sys", "pmc")
TAI_UTC = 37
# The clock of QEMU's e1000e stands still wherever it is set, so it is set over and over: to TAI, as a grandmaster's own
# receiver would. CLOCK_MONOTONIC is never stepped, whatever phc2sys makes of the system's time.
RECEIVER = f"""
import os, time
card = ~os.open("/dev/ptp0", os.O_RDWR) << 3 | 3  # FD_TO_CLOCKID, include/linux/posix-timers.h
ahead = time.time_ns() - time.monotonic_ns() + {TAI_UTC} * 10**9
while True:
    time.clock_settime_ns(card, time.monotonic_ns() + ahead)
    time.sleep(0.001)
"""
# It leads, and sends no Sync meanwhile: the card never says when it sent one.
LEADS = "[global]\nclockClass 6\nlogAnnounceInterval -1\nannounceReceiptTimeout 2\nlogSyncInterval 12\n"
VOUCHES = (
    "SET GRANDMASTER_SETTINGS_NP clockClass 6 clockAccuracy 0x21 offsetScaledLogVariance 0xffff "
    f"currentUtcOffset {TAI_UTC} leap61 0 leap59 0 currentUtcOffsetValid 1 ptpTimescale 1 timeTraceable 1 "
    "frequencyTraceable 1 timeSource 0x20"
)
LOOK = """
import json
import time
from tunectl.host.hosttime import judge, read_host_time
from tunectl.host.ptpclock import read_card_clock, read_card_time_ns
from tunectl.host.sysroot import Sysroot
root = Sysroot("/")
found = judge(read_host_time(root), 200e6)
card = read_card_clock(root, "dev/ptp0")
shown = read_card_time_ns(root, "dev/ptp0") - time.time_ns()
said = {"outcome": found.outcome, "reason": found.reason}
print(json.dumps({**said, "ahead": card.ahead_ns, "window": card.window_ns, "shown": shown}))
"""
PATIENCE_S = 120.0
pytestmark = [
    pytest.mark.long,
    pytest.mark.parametrize("lab", [EXPRESS], ids=[EXPRESS.name], indirect=True, scope="session"),
]
Look = dict[str, Any]


@pytest.fixture
def kept(installed: Lab) -> Lab:
    """A host whose card has the right time, in TAI, and a ptp4l that leads by it; nobody steers the system's clock."""
    if missing := [name for name in PROGRAMS if not shutil.which(name)]:
        pytest.skip(f"not installed: {', '.join(missing)} (Debian: linuxptp), which the guest gets from here")
    for name in PROGRAMS:
        installed.put(Path(shutil.which(name) or ""), f"/usr/sbin/{name}")
    installed.write("/root/receiver.py", RECEIVER)
    installed.write("/root/leads.conf", LEADS)
    begin(installed, "python3 /root/receiver.py")
    begin(installed, "ptp4l -f /root/leads.conf -i enp1s0 -m -q")
    installed.wait_for(f"pmc -u -b 0 '{VOUCHES}' | grep -q 'timeTraceable *1'")
    installed.wait_for("pmc -u -b 0 'GET PORT_DATA_SET' | grep -q 'portState *MASTER'")
    return installed


def begin(lab: Lab, words: str) -> None:
    """Start a program that goes on."""
    lab.run(f"setsid {words} >>/root/log 2>&1 </dev/null &")


def end(lab: Lab, words: str) -> None:
    """End the programs that were started with these words."""
    lab.run(f"pkill -f '^{words}'")


def until(lab: Lab, is_seen: Callable[[Look], bool]) -> Look:
    """The first look that is as wanted."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        look: Look = json.loads(lab.run(f"{PREFIX}/bin/python3 -", stdin=LOOK).out)
        if is_seen(look):
            return look
        assert time.monotonic() < deadline, f"{look}\n{lab.read('/root/log')[-1500:]}"


def test_phc2sys_brings_the_card_s_time_to_the_system_and_is_compared_with_it(kept: Lab) -> None:
    alone = until(kept, lambda look: look["outcome"] == "unreadable")
    assert "no program that is known here steers the clock" in alone["reason"]
    assert abs(alone["ahead"] - TAI_UTC * 10**9) < 1e9
    assert 0 <= alone["window"] < 1e8
    assert abs(alone["shown"] - TAI_UTC * 10**9) < 1e9
    copies = f"phc2sys -s enp1s0 -c CLOCK_REALTIME -O -{TAI_UTC}"
    begin(kept, copies)
    right = until(kept, lambda look: look["outcome"] == "compliant")
    assert "phc2sys (pid" in right["reason"]
    assert "steers the clock by /dev/ptp0 (grandmaster" in right["reason"]
    begin(kept, f"{copies} -R 2")
    twice = until(kept, lambda look: look["outcome"] == "drifted")
    assert "steer one clock" in twice["reason"]
    end(kept, copies)
    assert "no program that is known here" in until(kept, lambda look: look["outcome"] == "unreadable")["reason"]


def test_tai_taken_for_utc_is_said_and_so_is_a_card_s_clock_that_stands_still(kept: Lab) -> None:
    copies = "phc2sys -s enp1s0 -c CLOCK_REALTIME -O 0"
    begin(kept, copies)
    mixed = until(kept, lambda look: look["outcome"] == "drifted")
    assert "one takes TAI for UTC" in mixed["reason"]
    assert f"{TAI_UTC} s wrong to each other" in mixed["reason"]
    end(kept, copies)
    end(kept, "python3 /root/receiver.py")
    begin(kept, f"phc2sys -s enp1s0 -c CLOCK_REALTIME -O -{TAI_UTC}")
    still = until(kept, lambda look: look["outcome"] == "drifted" and "one takes TAI" not in look["reason"])
    assert "finds the clock off by" in still["reason"]
