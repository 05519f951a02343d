"""What each owner's answer means, and what is made of all of them against a limit."""

import errno
import json
import struct
import time
from pathlib import Path
from typing import Any

import pytest

from tests.host.clock.world import tracking
from tunectl.host.adjtimex import read_kernel_clock
from tunectl.host.chrony import parse_tracking
from tunectl.host.hosttime import (
    HostTime,
    Word,
    _of_phc2sys,
    _of_ptp,
    _of_timesyncd,
    across,
    behind,
    finding_of,
    judge,
    read_host_time,
)
from tunectl.host.leaptable import expired_leap_table
from tunectl.host.linuxptp import PtpClock
from tunectl.host.ptpclock import CardClock, parse_samples
from tunectl.host.sysroot import Sysroot
from tunectl.host.timekeepers import Timekeeper, read_timekeepers
from tunectl.host.timesyncd import Synced, parse_synced
from tunectl.shapes import KernelClock, replaced
from tunectl.wording import few

KERNEL = KernelClock(True, 0, 0.0, 37, 0, 0)
RIGHT = Word("chronyd", True, "192.0.2.1", 5e3, 80e3)
LIMIT_NS = 100e3

# ---- the kernel


def test_the_kernel_tells_anybody_and_is_not_changed() -> None:
    before, after = read_kernel_clock(), read_kernel_clock()
    assert before
    assert after
    assert before.max_error_ns >= 0
    assert before.tai_s == after.tai_s


# ---- chronyd's answer, as chrony 4.3 sent it


def float_of(value: int, exponent: int) -> int:
    """The word of candm.h for value * 2 ** (exponent - 25)."""
    return (exponent & 0x7F) << 25 | value & 0x1FFFFFF


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ((0, 0), 0.0),
        ((1, 25), 1.0),
        ((-1, 25), -1.0),
        ((3, 24), 1.5),
        ((1, -64), 2.0**-89),
        ((-(1 << 24), 63), -(2.0**62)),
    ],
)
def test_a_float_has_a_signed_exponent_and_a_signed_coefficient(word: tuple[int, int], value: float) -> None:
    answer = bytearray(tracking(bytes(12)))
    struct.pack_into("!I", answer, 28 + 40, float_of(*word))
    assert parse_tracking(bytes(answer)).offset_s == value


def test_an_answer_names_the_source_and_bounds_the_error() -> None:
    answer = bytearray(tracking(bytes(12)))
    for at, word in ((40, float_of(-1, 15)), (64, float_of(1, 20)), (68, float_of(1, 18))):
        struct.pack_into("!I", answer, 28 + at, word)
    found = parse_tracking(bytes(answer))
    assert (found.source, found.follows, found.is_own_clock) == ("10.5.0.2", True, False)
    assert found.bound_s == 2**-10 + 2**-7 + 2**-6


@pytest.mark.parametrize(
    ("reference", "family", "leap", "source", "follows"),
    [
        (0x50484330, 0, 0, "PHC0", True),
        (0x7F7F0101, 0, 0, "7F7F0101", False),  # `local`
        (0, 0, 3, "", False),
        (0x0A050002, 1, 3, "10.5.0.2", False),
        (0x1B5B4A00, 0, 0, "1B5B4A00", True),
    ],
)
def test_who_it_follows(reference: int, family: int, leap: int, source: str, follows: bool) -> None:
    answer = bytearray(tracking(bytes(12)))
    struct.pack_into("!I", answer, 28, reference)
    struct.pack_into("!H", answer, 28 + 20, family)
    struct.pack_into("!H", answer, 28 + 26, leap)
    found = parse_tracking(bytes(answer))
    assert (found.source, found.follows) == (source, follows)


@pytest.mark.parametrize(
    "answer",
    [tracking(bytes(12), status=2), tracking(bytes(12), size=90), tracking(bytes(12), version=5)],
    ids=range(3),
)
def test_another_answer_is_none(answer: bytes) -> None:
    with pytest.raises(OSError, match="none that is known here"):
        parse_tracking(answer)


@pytest.mark.parametrize(
    ("at", "shape", "value"),
    [
        (26, "!H", 4),  # leap status
        (26, "!H", 0xFFFF),
        (64, "!I", float_of(-1, 15)),  # root delay
        (68, "!I", float_of(-1, 15)),  # root dispersion
        (72, "!I", float_of(-1, 15)),  # the interval between updates
        (72, "!I", float_of((1 << 23) + 1, 26)),
    ],
)
def test_what_cannot_be_true_is_no_answer(at: int, shape: str, value: int) -> None:
    answer = bytearray(tracking(bytes(12)))
    struct.pack_into(shape, answer, 28 + at, value)
    with pytest.raises(OSError, match="cannot be true") as caught:
        parse_tracking(bytes(answer))
    assert caught.value.errno == errno.EPROTO


def test_the_longest_interval_is_two_to_the_24_s() -> None:
    answer = bytearray(tracking(bytes(12)))
    struct.pack_into("!I", answer, 28 + 72, float_of(1 << 23, 26))
    assert parse_tracking(bytes(answer)).interval_s == 2**24


# ---- systemd-timesyncd's, as systemd 252 sent it

BUS: dict[str, Any] = {
    "ServerName": {"type": "s", "data": "ntp.example"},
    "PollIntervalUSec": {"type": "t", "data": 32000000},
    "NTPMessage": {
        "type": "(uuuuittayttttbtt)",
        "data": [0, 4, 4, 1, -26, 2000, 300, [127, 127, 1, 1], 1000000, 1000700, 1000800, 1000500, False, 7, 0],
    },
}


def test_its_last_answer_has_offset_and_distance() -> None:
    text = json.dumps({"type": "a{sv}", "data": [BUS]})
    found = parse_synced(text)
    assert found == Synced("ntp.example", True, 7, 32.0, 1.0005, 0.0005, 0.0015)
    assert found.bound_s(1.0005 + 100) == pytest.approx(0.0005 + 0.0015 + 100 * 15e-6)


def synced_by(tmp_path: Path, ahead_s: float = 0.0, poll_us: int = 32_000_000, **changed: int) -> Word:
    """What is made of an answer that came so far in the future, with these fields of NTPMessage changed."""
    at = {"leap": 0, "stratum": 3, "delay": 5, "dispersion": 6}
    message = list(BUS["NTPMessage"]["data"])
    moved = time.time_ns() // 1000 + round(ahead_s * 1e6)
    message[8:12] = [moved, moved + 700, moved + 800, moved + 500]
    for name, value in changed.items():
        message[at[name]] = value
    said = {**BUS, "NTPMessage": {"data": message}, "PollIntervalUSec": {"data": poll_us}}
    for path, text in (
        ("run/systemd/system/x", ""),
        ("usr/bin/busctl", ""),
        ("tunectl-answers/timesync", json.dumps({"data": [said]})),
    ):
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).write_text(text)
    return _of_timesyncd(Sysroot(str(tmp_path)), Timekeeper("systemd-timesyncd", 9))


@pytest.mark.parametrize(
    ("changed", "outcome", "said"),
    [
        ({}, "compliant", "by ntp.example: it is off by 500 µs, and by 2 ms at most"),
        ({"ahead_s": -300.0}, "drifted", "ntp.example has not answered for 300"),
        ({"ahead_s": 3600.0}, "drifted", "the clock was set back since its last update"),
        ({"ahead_s": 3e7}, "drifted", "the clock was set back since its last update"),
        ({"leap": 3}, "drifted", "its server ntp.example says that it is not synchronised itself"),
        ({"stratum": 16}, "drifted", "its server ntp.example says that it is not synchronised itself"),
        ({"stratum": 0}, "drifted", "its server ntp.example says that it is not synchronised itself"),
        ({"dispersion": -(10**7)}, "unreadable", "or cannot be true"),
        ({"delay": -1}, "unreadable", "or cannot be true"),
        ({"poll_us": 10**15, "ahead_s": -1e6}, "unreadable", "or cannot be true"),
        ({"poll_us": -1}, "unreadable", "or cannot be true"),
    ],
)
def test_what_timesyncd_says_is_believed_where_it_can_be_true(
    tmp_path: Path, changed: dict[str, Any], outcome: str, said: str
) -> None:
    found = judge(HostTime(KERNEL, (), (synced_by(tmp_path, **changed),)), 3e6)
    assert found.outcome == outcome
    assert said in found.reason


@pytest.mark.parametrize(
    ("files", "why", "fix"),
    [
        (
            ("run/systemd/system/x", "usr/bin/busctl"),
            "it gave no answer",
            "see in its log why systemd-timesyncd gives no",
        ),
        (("run/systemd/system/x",), "there is no systemd, or no busctl", "run as root on the host itself"),
    ],
)
def test_a_timesyncd_that_hangs_is_to_be_started_again(
    tmp_path: Path, files: tuple[str, ...], why: str, fix: str
) -> None:
    for path in files:
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).write_text("")
    word = _of_timesyncd(Sysroot(str(tmp_path)), Timekeeper("systemd-timesyncd", 9))
    assert why in word.lack
    assert str(word.fix).startswith(fix)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        "{}",
        '{"data": [1]}',
        '{"data": [{"NTPMessage": {"data": [1, 2]}}]}',
        '{"data": [{"NTPMessage": 1}]}',
        "x",
    ],
)
def test_what_is_no_answer_of_its_is_none(text: str) -> None:
    assert parse_synced(text) is None


# ---- a card's clock


def samples(*triples: tuple[float, float, float]) -> bytes:
    """As the ioctl fills it: the system before, the card, the system after, in seconds."""
    body = b"".join(struct.pack("=qI4x", int(one), round(one % 1 * 1e9)) for triple in triples for one in triple)
    return (struct.pack("=I12x", len(triples)) + body).ljust(16 + 25 * 3 * 16, b"\0")


def test_the_narrowest_reading_counts() -> None:
    found = parse_samples(samples((10, 47.5, 10.5), (20, 57.25, 20.0), (30, 67.5, 30.25)))
    assert found == CardClock(37_250_000_000, 0)
    with pytest.raises(OSError, match="no reading"):
        parse_samples(samples())
    with pytest.raises(OSError, match="no reading"):
        parse_samples(samples((10, 47, 9)))  # a clock that was set meanwhile


CARD = Word("ptp4l", False, "grandmaster 1", 20.0, 500.0, is_of_card=True, tai_s=37)
CLOCK = PtpClock("slave", "eth0", False, False, 20.0, 1, 1.0, 300.0, 6, "1", 100.0, True, 37, True)
PHC2SYS = Word("phc2sys", True, "/dev/ptp0")


@pytest.mark.parametrize(
    ("is_ptp_time", "ahead_ns", "offset_ns", "outcome"),
    [
        (True, 37_000_000_100, 120.0, "compliant"),
        (True, 36_999_999_900, 120.0, "compliant"),
        (True, 37_000_200_000, 200_020.0, "drifted"),
        (True, 0, 37e9 + 20, "drifted"),  # phc2sys was told of no offset: the system's clock shows TAI
        (True, 74_000_000_000, 37e9 + 20, "drifted"),  # or the card does twice
        (False, 100, 120.0, "compliant"),
        (False, 37_000_000_000, 37e9 + 20, "drifted"),
    ],
)
def test_a_cards_clock_counts_in_tai(is_ptp_time: bool, ahead_ns: int, offset_ns: float, outcome: str) -> None:
    word = across(PHC2SYS, CARD, CLOCK._replace(is_ptp_time=is_ptp_time), CardClock(ahead_ns, 1000), "/dev/ptp0")
    assert word.offset_ns == offset_ns
    assert word.bound_ns == offset_ns - 20 + 500 + 500
    found = judge(HostTime(KERNEL, (), (CARD, word)), LIMIT_NS)
    assert found.outcome == outcome
    assert ("one takes TAI for UTC" in found.reason) is (is_ptp_time and offset_ns > 1e9)


@pytest.mark.parametrize(
    ("error", "why", "fix"),
    [
        (errno.ETIMEDOUT, "gave no answer within 2 s at /run/ptp4l", "see in its log why ptp4l gives no answer"),
        (errno.ECONNREFUSED, "Connection refused at /run/ptp4l", "see in its log why ptp4l gives no answer"),
        (errno.EACCES, "Permission denied at /run/ptp4l", "run as root on the host itself"),
    ],
)
def test_phc2sys_behind_a_ptp4l_that_does_not_say(tmp_path: Path, error: int, why: str, fix: str) -> None:
    """It has no socket of its own: what keeps ptp4l from saying keeps it."""
    ptp = [(Timekeeper("ptp4l", 8), OSError(error, why))]
    word = _of_phc2sys(Sysroot(str(tmp_path)), Timekeeper("phc2sys", 7, ("-a", "-r")), ptp)
    found = judge(HostTime(KERNEL, (), (word,)), LIMIT_NS)
    assert (found.outcome, why in found.reason) == ("unreadable", True)
    assert str(found.fix).startswith(fix)


@pytest.mark.parametrize(
    ("ago_s", "interval_s", "outcome", "said"),
    [
        (0.0, 1.0, "compliant", ""),
        (14.0, 0.125, "compliant", ""),
        (18.0, 0.125, "drifted", "it has heard no Sync for 18 s"),
        (100.0, 16.0, "compliant", ""),
        (130.0, 16.0, "drifted", "it has heard no Sync for 130 s"),
        (-3600.0, 1.0, "drifted", "the clock was set back since its last update"),
        (None, 1.0, "unreadable", "has heard no Sync since it chose its grandmaster"),
    ],
)
def test_a_ptp4l_that_hears_no_sync_is_not_taken_at_its_last_word(
    ago_s: float | None, interval_s: float, outcome: str, said: str
) -> None:
    heard_ns = 0 if ago_s is None else time.time_ns() - round(ago_s * 1e9)
    clock = CLOCK._replace(is_software=True, heard_ns=heard_ns, sync_interval_s=interval_s)
    word = _of_ptp(Sysroot("/"), Timekeeper("ptp4l", 8), clock)
    found = judge(HostTime(KERNEL, (), (word,)), LIMIT_NS)
    assert (found.outcome, said in found.reason) == (outcome, True)


def test_what_a_card_stamped_is_compared_with_that_card_alone() -> None:
    """The system's clock may be 37 s or years from it; this one cannot be read."""
    word = _of_ptp(Sysroot("/"), Timekeeper("ptp4l", 8), CLOCK._replace(interface="none", heard_ns=time.time_ns()))
    assert "when ptp4l (pid 8, for 0 s) last heard a Sync is not known: the clock of none is not read" in word.lack
    copying = behind(RIGHT._replace(source="PHC0"), [word])
    assert judge(HostTime(KERNEL, (), (copying, word)), LIMIT_NS).outcome == "unreadable"


def test_a_card_that_nobody_vouches_for_bounds_nothing() -> None:
    word = across(PHC2SYS, CARD._replace(bound_ns=None), CLOCK, CardClock(37_000_000_000, 10), "/dev/ptp0")
    assert judge(HostTime(KERNEL, (), (word,)), LIMIT_NS).outcome == "unreadable"


def test_chronyds_bound_grows_by_that_of_the_card_that_it_copies() -> None:
    word = behind(RIGHT._replace(source="PHC0"), [CARD, RIGHT._replace(keeper="another", steers=False)])
    assert (word.offset_ns, word.bound_ns) == (5e3 + 20, 80e3 + 500)
    unvouched = behind(RIGHT, [CARD._replace(bound_ns=None, lack="nobody vouches")])
    assert judge(HostTime(KERNEL, (), (unvouched,)), LIMIT_NS).reason.startswith("nobody vouches; the kernel")
    hung = Word("ptp4l", False, lack="it hangs", is_of_card=True)
    assert judge(HostTime(KERNEL, (), (behind(RIGHT, [hung]), hung)), LIMIT_NS).reason.startswith(
        "it hangs; the kernel"
    )
    assert behind(RIGHT, []) is RIGHT  # a card that keeps itself right, as some clouds have


# ---- who steers


@pytest.mark.parametrize(
    ("name", "args", "steers"),
    [
        ("chronyd", "-F 1", True),
        ("chronyd", "-x", False),
        ("chronyd", "-4x -f /etc/x.conf", False),
        ("chronyd", "-f /etc/x.conf", True),
        ("chronyd", "-Q", False),
        ("phc2sys", "-s eth0 -w", True),
        ("phc2sys", "-s eth0 -c eth1", False),
        ("phc2sys", "-s eth0 -c CLOCK_REALTIME --step_threshold 1", True),
        ("phc2sys", "-a", False),
        ("phc2sys", "-a -r", True),
        ("phc2sys", "-arr", True),
        ("ntpd", "-g", True),
    ],
)
def test_what_a_program_was_told_to_set(name: str, args: str, steers: bool) -> None:
    assert Timekeeper(name, 1, tuple(args.split())).sets_system_clock is steers


def test_a_users_process_of_that_name_is_nobody(tmp_path: Path) -> None:
    for pid, comm, user in ((7, "chronyd", 1000), (8, "chronyd", 0), (9, "phc2sys", 1000)):
        place = tmp_path / f"proc/{pid}"
        place.mkdir(parents=True)
        (place / "comm").write_text(f"{comm}\n")
        (place / "status").write_text(f"Name:\t{comm}\nUid:\t{user}\t{user}\t{user}\t{user}\n")
        (place / "cmdline").write_bytes(b"chronyd\0-x\0")
    assert [(one.name, one.pid, one.args) for one in read_timekeepers(Sysroot(str(tmp_path)))] == [
        ("chronyd", 8, ("-x",))
    ]


# ---- leap seconds


@pytest.mark.parametrize(
    ("line", "table", "now", "expired"),
    [
        ("leapsectz right/UTC", "#@\t3991593600", 1782604801, "/usr/share/zoneinfo/leap-seconds.list"),
        ("leapsectz right/UTC", "#@\t3991593600", 1782604799, ""),
        (
            "leapsectz right/UTC",
            "#expires 1782604800 (2026-06-28 00:00:00 UTC)",
            1782604801,
            "/usr/share/zoneinfo/leap-seconds.list",
        ),
        ("leapsectz right/UTC", "no such line", 1782604801, ""),
        ("leapseclist /usr/share/zoneinfo/leap-seconds.list", "#@ 1", 0, "/usr/share/zoneinfo/leap-seconds.list"),
        ("# leapsectz right/UTC", "#@ 1", 0, ""),
    ],
)
def test_a_table_that_chronyd_uses_expires(tmp_path: Path, line: str, table: str, now: float, expired: str) -> None:
    for path, text in (("etc/chrony/conf.d/a.conf", line), ("usr/share/zoneinfo/leap-seconds.list", table)):
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).write_text(f"{text}\n")
    (tmp_path / "etc/chrony/chrony.conf").write_text("confdir /etc/chrony/conf.d\n")
    keepers = (Timekeeper("chronyd", 1),)
    assert expired_leap_table(Sysroot(str(tmp_path)), keepers, now) == expired
    assert not expired_leap_table(Sysroot(str(tmp_path)), (), now)


# ---- the judgement


@pytest.mark.parametrize(
    ("words", "outcome", "said"),
    [
        ((RIGHT,), "compliant", "off by 5 µs, and by 80 µs at most"),
        ((RIGHT._replace(bound_ns=LIMIT_NS),), "compliant", ""),
        ((RIGHT._replace(bound_ns=LIMIT_NS + 1),), "unreadable", "not proved to be within 100 µs"),
        (
            (RIGHT._replace(offset_ns=LIMIT_NS + 1, bound_ns=9e9),),
            "drifted",
            "against 192.0.2.1, chronyd finds the clock off by",
        ),
        ((RIGHT._replace(bound_ns=None),), "unreadable", "not proved"),
        ((RIGHT._replace(steers=False),), "unreadable", "only watches the clock"),
        ((RIGHT._replace(steers=False, offset_ns=1e9),), "drifted", "off by 1 s"),
        ((RIGHT._replace(moved_ns=1e9, moved_ago_s=3599.0),), "drifted", "found the clock off by 1 s 3,599 s ago"),
        ((RIGHT._replace(moved_ns=1e9, moved_ago_s=3601.0),), "compliant", ""),
        ((RIGHT, RIGHT._replace(keeper="ptp4l")), "drifted", "chronyd and ptp4l steer one clock"),
        ((RIGHT, RIGHT._replace(keeper="ptp4l", steers=False)), "compliant", ""),
        (
            (RIGHT, RIGHT._replace(keeper="ptp4l", steers=False, trouble="it follows nobody")),
            "drifted",
            "ptp4l: it follows nobody",
        ),
        (
            (RIGHT, RIGHT._replace(keeper="ptp4l", steers=False, offset_ns=1e9)),
            "drifted",
            "ptp4l finds the clock off by 1 s",
        ),
        ((RIGHT._replace(tai_s=36),), "drifted", "the kernel's TAI offset is 37 s, chronyd says 36 s"),
        ((RIGHT._replace(lack="it does not say"),), "unreadable", "it does not say"),
        ((RIGHT, Word("ptp4l", False, lack="it hangs")), "unreadable", "it hangs"),  # it may steer, too
        ((RIGHT, Word("ptp4l", False, lack="it hangs", is_of_card=True)), "compliant", ""),
        ((Word("ptp4l", False, is_of_card=True, offset_ns=1.0, bound_ns=2.0),), "unreadable", "no program"),
        ((), "unreadable", "no program that is known here steers the clock"),
    ],
)
def test_the_words_against_a_limit(words: tuple[Word, ...], outcome: str, said: str) -> None:
    found = judge(HostTime(KERNEL, (), words), LIMIT_NS)
    assert found.outcome == outcome
    assert said in found.reason
    assert bool(found.fix) == (outcome != "compliant")


@pytest.mark.parametrize("word", [RIGHT, RIGHT._replace(keeper="ptp4l"), RIGHT._replace(steers=False)])
@pytest.mark.parametrize("bound_ns", [4999.0, 0.0, -7.45])
def test_a_bound_below_the_offset_is_none(word: Word, bound_ns: float) -> None:
    found = judge(HostTime(KERNEL, (), (word._replace(bound_ns=bound_ns),)), LIMIT_NS)
    assert (found.outcome, found.bound_ns) == ("unreadable", None)
    assert "and that cannot be true" in found.reason


@pytest.mark.parametrize("path_delay_ns", [300e6, -300e6])
def test_a_path_delay_counts_by_its_size(path_delay_ns: float) -> None:
    clock = CLOCK._replace(is_software=True, heard_ns=time.time_ns(), path_delay_ns=path_delay_ns)
    word = _of_ptp(Sysroot("/"), Timekeeper("ptp4l", 8), clock)
    assert word.bound_ns == 20 + 150e6 + 100


def test_each_who_steers_is_named_once() -> None:
    first, second, watching = (Timekeeper("chronyd", pid, args) for pid, args in ((7, ()), (8, ()), (9, ("-x",))))
    both = RIGHT._replace(keeper=few([first, second, watching]))
    found = judge(HostTime(KERNEL, (first, second, watching), (both,)), LIMIT_NS)
    named = "chronyd (pid 7, for 0 s) and chronyd (pid 8, for 0 s) steer one clock"
    assert found.reason.split(";")[0] == named
    found = judge(HostTime(KERNEL, (first, watching), (RIGHT._replace(keeper=few([first, watching])),)), LIMIT_NS)
    assert found.outcome == "compliant"


def test_a_synchronised_kernel_proves_nothing() -> None:
    assert judge(HostTime(KERNEL), LIMIT_NS).outcome == "unreadable"


@pytest.mark.parametrize(
    ("kernel", "said"),
    [
        (replaced(KERNEL, tai_s=0), "the kernel's TAI offset is 0 s, chronyd says 37 s: CLOCK_TAI shows UTC"),
        (replaced(KERNEL, synchronised=False), "the kernel calls it unsynchronised"),
        (
            KernelClock(True, -1_500, -12.3456, 37, 16_000_000, 250_000),
            "the kernel calls it synchronised, offset -1.5 µs, frequency -12.346 ppm, wrong by 250 µs, by 16 ms at "
            "most, TAI offset 37 s",
        ),
        (None, "the kernel's own view is not shown here"),
    ],
)
def test_what_is_worth_knowing_is_no_fault(kernel: KernelClock | None, said: str) -> None:
    found = judge(HostTime(kernel, (), (RIGHT._replace(tai_s=37),)), LIMIT_NS)
    assert found.outcome == "compliant"
    assert said in found.reason


@pytest.mark.parametrize(
    ("bound_ns", "outcome", "observed", "desired"),
    [
        (80e3, "compliant", "80 µs", "100 µs"),
        (100e3, "compliant", "100 µs", "100 µs"),
        (100_001.0, "unreadable", "100 µs", "100 µs"),
        (None, "unreadable", None, None),
    ],
)
def test_check_and_monitor_have_one_finding_of_it(
    bound_ns: float | None, outcome: str, observed: str | None, desired: str | None
) -> None:
    judged = judge(HostTime(KERNEL, (), (RIGHT._replace(bound_ns=bound_ns),)), LIMIT_NS)
    found = finding_of(judged, LIMIT_NS)
    assert (found.outcome, found.observed, found.desired) == (outcome, observed, desired)
    assert (found.knob, found.reason, found.fix) == ("check.clock_sync", judged.reason, judged.fix)


def test_a_recorded_host_is_asked_nothing(tmp_path: Path) -> None:
    found = judge(read_host_time(Sysroot(str(tmp_path))), LIMIT_NS)
    assert (found.outcome, found.reason.split(":")[0]) == ("unreadable", "a recorded host")
