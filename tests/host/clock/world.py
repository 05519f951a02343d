"""A world of its own for daemons that keep time: namespaces with a veth to a peer, and a clock that nobody can set.

`python -m tests.host.clock.world CASE` is the first process in it, and prints what tunectl makes of the case: the last
look, and whether it was the one that was waited for. The daemons are the real ones; noclock.c is between them and the
machine's clock. Nothing here needs a quiet machine: it looks again until it has seen what it waits for, or for minutes.
"""

import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from tunectl.host.hosttime import HostTime, Judged, judge, read_host_time
from tunectl.host.sysroot import Sysroot
from tunectl.hostfile.shape import Clock

NEAR, FAR = "10.5.0.1", "10.5.0.2"
LIMIT_NS = Clock(rule="cat").limit_ns  # what a machine under load keeps
PATIENCE_S = 150.0
RUN = Path("/run")
NTP_EPOCH_S = 2_208_988_800
HOST = Sysroot("/")
Look = tuple[HostTime, Judged]
Case = Callable[[], "Look | None"]
Wanted = Callable[[HostTime, Judged], bool]


def set_up() -> None:
    """The devices, and an empty /run."""
    for words in (
        "mount -t tmpfs -o mode=755 tmpfs /run",
        "ip link set lo up",
        "ip netns add far",
        "ip link add v0 type veth peer name v1 netns far",
        f"ip addr add {NEAR}/24 dev v0",
        "ip link set v0 up",
        f"ip -n far addr add {FAR}/24 dev v1",
        "ip -n far link set v1 up",
    ):
        subprocess.run(words.split(), check=True, capture_output=True)


def start(*words: str, is_far: bool = False, touches_clock: bool = False) -> subprocess.Popen[bytes]:
    """A daemon, here or at the other end; one that would set the clock is kept from it."""
    argv = ["ip", "netns", "exec", "far", *words] if is_far else list(words)
    env = {**os.environ, **({"LD_PRELOAD": os.environ["NOCLOCK"]} if touches_clock else {})}
    with (RUN / f"{Path(words[0]).name}.log").open("ab") as log:
        return subprocess.Popen(argv, env=env, stdout=log, stderr=log)


def until(is_seen: Wanted, patience_s: float = PATIENCE_S) -> Look | None:
    """The first look that is the one; None where none was, after minutes."""
    end = time.monotonic() + patience_s
    while time.monotonic() < end:
        seen = read_host_time(HOST)
        judged = judge(seen, LIMIT_NS)
        print(judged.outcome, judged.reason, file=sys.stderr)
        if is_seen(seen, judged):
            return seen, judged
        time.sleep(0.5)
    return None


def serve_time(ahead_s: float = 0.0) -> Callable[[], None]:
    """An NTP server at the other end, whose clock is so far ahead; what is returned ends it."""
    words = [sys.executable, "-m", "tests.host.clock.world", "ntp-server", str(ahead_s)]
    server = start(*words, is_far=True)
    return server.kill


def ntp_server(ahead_s: float) -> None:
    """RFC 5905, 7.3: mode 4, stratum 1, each time in 2^-32 s since 1900."""

    def now() -> int:
        return int((time.time() + ahead_s + NTP_EPOCH_S) * (1 << 32))

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as serving:
        serving.bind((FAR, 123))
        while True:
            asked, sender = serving.recvfrom(512)
            arrived = now()
            head = struct.pack("!BBbbII4s", 0x24, 1, 0, -20, 0, 0, b"TEST")
            times = struct.pack("!QQQQ", arrived, struct.unpack_from("!Q", asked, 40)[0], arrived, now())
            serving.sendto(head + times, sender)


def chronyd(*words: str, conf: str = "", touches_clock: bool = True) -> subprocess.Popen[bytes]:
    """With its own files; it asks the peer sixteen times a second."""
    (RUN / "chrony").mkdir(mode=0o750, exist_ok=True)
    lines = f"server {FAR} minpoll -4 maxpoll -4\nmaxdistance 16\ndriftfile /run/chrony/drift\n{conf}\n"
    (RUN / "chrony.conf").write_text(lines)
    argv = ("chronyd", "-n", "-u", "root", "-f", "/run/chrony.conf", *words)
    return start(*argv, touches_clock=touches_clock)


PTP = """[global]
time_stamping software
logSyncInterval -3
logMinDelayReqInterval -3
logAnnounceInterval -1
announceReceiptTimeout 4
first_step_threshold 0.0
pi_proportional_const 0.7
pi_integral_const 0.3
"""
VOUCHED = (
    "SET GRANDMASTER_SETTINGS_NP clockClass 6 clockAccuracy 0x21 offsetScaledLogVariance 0xffff currentUtcOffset 37 "
    "leap61 0 leap59 0 currentUtcOffsetValid 1 ptpTimescale 0 timeTraceable 1 frequencyTraceable 1 timeSource 0x20"
)


def grandmaster(*, vouches: bool = True, conf: str = "") -> subprocess.Popen[bytes]:
    """A ptp4l at the other end that leads; it says that its time is traceable where it `vouches` for it."""
    (RUN / "far.conf").write_text(
        f"{PTP}clockClass 6\nfree_running 1\npriority1 10\nuds_address /run/far-ptp4l\n{conf}\n"
    )
    leading = start("ptp4l", "-f", "/run/far.conf", "-i", "v1", "-m", "-q", is_far=True)
    deadline = time.monotonic() + PATIENCE_S
    argv = (
        "ip",
        "netns",
        "exec",
        "far",
        "pmc",
        "-u",
        "-b",
        "0",
        "-s",
        "/run/far-ptp4l",
        "-f",
        "/run/far.conf",
        VOUCHED,
    )
    while vouches and time.monotonic() < deadline:
        said = subprocess.run(argv, capture_output=True, text=True)
        if "timeTraceable           1" in said.stdout:
            break
        time.sleep(0.3)
    return leading


def ptp4l(*words: str, conf: str = "") -> subprocess.Popen[bytes]:
    """One here that follows."""
    (RUN / "near.conf").write_text(f"{PTP}{conf}\n")
    return start("ptp4l", "-f", "/run/near.conf", "-i", "v0", "-s", "-m", "-q", *words, touches_clock=True)


def is_right(_: HostTime, judged: Judged) -> bool:
    """Does an owner keep it?"""
    return judged.outcome == "compliant"


def is_wrong(_: HostTime, judged: Judged) -> bool:
    """Is it wrong for certain?"""
    return judged.outcome == "drifted"


def is_unknown(_: HostTime, judged: Judged) -> bool:
    """Can nobody say?"""
    return judged.outcome == "unreadable"


def chrony_right() -> Look | None:
    """It follows its server."""
    serve_time()
    chronyd()
    return until(is_right)


def chrony_stopped() -> Look | None:
    """It did, and has ended."""
    serve_time()
    keeping = chronyd()
    if until(is_right) is None:
        return None
    keeping.terminate()
    keeping.wait()
    return until(is_unknown)


def chrony_hangs() -> Look | None:
    """It did, and says nothing any more."""
    serve_time()
    keeping = chronyd()
    if until(is_right) is None:
        return None
    keeping.send_signal(signal.SIGSTOP)
    return until(is_unknown)


def chrony_source_gone() -> Look | None:
    """It runs on, and its server has ended."""
    end = serve_time()
    chronyd()
    if until(is_right) is None:
        return None
    end()
    subprocess.run(["ip", "-n", "far", "link", "set", "v1", "down"], check=True)
    return until(is_wrong)


def chrony_without_source() -> Look | None:
    """There never was a server."""
    chronyd()
    return until(is_wrong)


def chrony_by_itself() -> Look | None:
    """It follows its own clock."""
    chronyd(conf="local stratum 3")
    return until(lambda seen, _: any("own clock" in word.trouble for word in seen.words))


def chrony_hour() -> Look | None:
    """The clock is an hour behind the server's, and chronyd may not move it."""
    serve_time(3600.0)
    chronyd("-x")
    return until(lambda _, judged: judged.outcome == "drifted" and (judged.offset_ns or 0) > 1e12)


def chrony_stepped() -> Look | None:
    """chronyd has stepped the clock by an hour, as it believes."""
    serve_time(3600.0)
    chronyd(conf="makestep 1 -1")
    return until(lambda seen, judged: judged.outcome == "drifted" and any(word.moved_ns > 1e12 for word in seen.words))


def chrony_watches_itself() -> Look | None:
    """It follows its own clock, and sets nothing."""
    chronyd("-x", conf="local stratum 1", touches_clock=False)
    return until(lambda _, judged: "its own clock" in judged.reason)


def chrony_watches() -> Look | None:
    """It finds the clock right, and does not steer it."""
    serve_time()
    chronyd("-x", touches_clock=False)
    return until(lambda seen, judged: judged.outcome == "unreadable" and judged.bound_ns is not None)


def chrony_at_its_path() -> Look | None:
    """It listens at its Unix socket alone."""
    serve_time()
    chronyd(conf="cmdport 0")
    return until(is_right)


def two_chronyds() -> Look | None:
    """A second one steers, too."""
    serve_time()
    chronyd()
    (RUN / "second.conf").write_text(f"server {FAR}\npidfile /run/second.pid\ncmdport 0\nbindcmdaddress /\n")
    start("chronyd", "-n", "-u", "root", "-f", "/run/second.conf", touches_clock=True)
    return until(lambda seen, judged: judged.outcome == "drifted" and len(seen.keepers) == 2)


def ptp_right() -> Look | None:
    """ptp4l follows a grandmaster that vouches for its time."""
    grandmaster()
    ptp4l()
    return until(is_right)


def ptp_unvouched() -> Look | None:
    """It follows one that does not."""
    grandmaster(vouches=False)
    ptp4l()
    return until(lambda _, judged: judged.outcome == "unreadable" and judged.offset_ns is not None)


def ptp_source_gone() -> Look | None:
    """Its grandmaster has ended."""
    leading = grandmaster()
    ptp4l()
    if until(is_right) is None:
        return None
    leading.terminate()
    leading.wait()
    return until(is_wrong)


def ptp_sync_gone() -> Look | None:
    """Its grandmaster goes on to announce itself, and sends the time no more."""
    leading = grandmaster()
    ptp4l(conf="announceReceiptTimeout 100")
    if until(is_right) is None:
        return None
    leading.terminate()
    leading.wait()
    grandmaster(conf="logSyncInterval 12")
    return until(is_wrong)


def ptp_hangs() -> Look | None:
    """It did, and says nothing any more."""
    grandmaster()
    keeping = ptp4l()
    if until(is_right) is None:
        return None
    keeping.send_signal(signal.SIGSTOP)
    return until(is_unknown)


def ptp_full() -> Look | None:
    """It hangs, and so many have asked that nobody takes a question any more (net.unix.max_dgram_qlen)."""
    if ptp_hangs() is None:
        return None
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as asking:
        asking.setblocking(False)
        with suppress(BlockingIOError):
            while True:
                asking.sendto(b"?", "/run/ptp4l")
    return until(is_unknown)


def ptp_and_chrony() -> Look | None:
    """Both steer one clock."""
    serve_time()
    grandmaster()
    chronyd()
    ptp4l()
    return until(lambda seen, judged: judged.outcome == "drifted" and sum(word.steers for word in seen.words) > 1)


def ptp_beside_chrony() -> Look | None:
    """ptp4l measures, and leaves the clock to chronyd."""
    serve_time()
    grandmaster()
    chronyd()
    ptp4l(conf="free_running 1")
    return until(
        lambda seen, judged: (
            judged.outcome == "compliant" and sum(word.offset_ns is not None for word in seen.words) == 2
        )
    )


def nobody() -> Look | None:
    """No such program runs."""
    return until(is_unknown)


def answering(answer: Callable[[bytes], Iterator[bytes]], wanted: Wanted = is_unknown) -> Look | None:
    """Root's own program at chronyd's port answers so; a process of chronyd's name runs."""
    serving = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    serving.bind(("127.0.0.1", 323))

    def serve() -> None:
        while True:
            asked, sender = serving.recvfrom(2048)
            for each in answer(asked):
                with suppress(OSError):
                    serving.sendto(each, sender)

    threading.Thread(target=serve, daemon=True).start()
    (RUN / "chronyd").symlink_to("/bin/sleep")
    start("/run/chronyd", "600")
    return until(lambda seen, judged: bool(seen.keepers) and wanted(seen, judged), 30)


def tracking(
    asked: bytes, sequence: bytes = b"", status: int = 0, size: int = 104, version: int = 6, ahead_s: int = 0
) -> bytes:
    """An answer that finds the clock right, but for what is asked for."""
    head = struct.pack("!BBxxHHHxxxxxx", version, 2, 33, 5, status) + (sequence or asked[8:12]) + bytes(8)
    body = struct.pack("!I4s12xHxxHHIII", 0x0A050002, bytes([10, 5, 0, 2]), 1, 1, 0, 0, int(time.time()) + ahead_s, 0)
    return (head + body).ljust(104, b"\0").ljust(size, b"\0")[:size]


def flood(asked: bytes) -> Iterator[bytes]:
    """Rubbish, as fast as it can be sent, for longer than anybody waits."""
    end = time.monotonic() + 4
    while time.monotonic() < end:
        yield tracking(asked, sequence=b"none")


HOSTILE: dict[str, Callable[[bytes], Iterator[bytes]]] = {
    "silence": lambda asked: iter(()),
    "rubbish": lambda asked: iter((b"", b"x", os.urandom(104), bytes(104))),
    "echo": lambda asked: iter((asked,)),
    "other-sequence": lambda asked: iter((tracking(asked, sequence=b"none"),)),
    "refusal": lambda asked: iter((tracking(asked, status=9),)),
    "other-version": lambda asked: iter((tracking(asked, version=7),)),
    "all-ones": lambda asked: iter((tracking(asked)[:28].ljust(104, b"\xff"),)),
    "too-short": lambda asked: iter((tracking(asked, size=40),)),
    "too-long": lambda asked: iter((tracking(asked, size=60_000),)),
    "flood": flood,
}


def free_port() -> Look | None:
    """Any user may listen at the port here: a right answer proves nothing."""
    Path("/proc/sys/net/ipv4/ip_unprivileged_port_start").write_text("0")
    return answering(lambda asked: iter((tracking(asked),)))


def true_answer() -> Look | None:
    """The same at a port that only root has is believed: what is hostile fails by what it is."""
    return answering(lambda asked: iter((tracking(asked),)), is_right)


def answer_of_the_future() -> Look | None:
    """It was given before somebody set the clock back by an hour."""
    return answering(lambda asked: iter((tracking(asked, ahead_s=3600),)), is_wrong)


CASES: dict[str, Case] = {
    **{
        case.__name__: case
        for case in (
            *(nobody, chrony_right, chrony_stopped, chrony_hangs, chrony_source_gone, chrony_without_source),
            *(
                chrony_by_itself,
                chrony_hour,
                chrony_stepped,
                chrony_watches,
                chrony_watches_itself,
                chrony_at_its_path,
                two_chronyds,
            ),
            *(ptp_hangs, ptp_full, ptp_sync_gone),
            *(ptp_right, ptp_unvouched, ptp_source_gone, ptp_and_chrony, ptp_beside_chrony, free_port, true_answer),
            answer_of_the_future,
        )
    },
    **{name: lambda answer=answer: answering(answer) for name, answer in HOSTILE.items()},  # type: ignore[misc]
}


def main() -> None:
    """One case, as JSON."""
    if sys.argv[1] == "ntp-server":
        ntp_server(float(sys.argv[2]))
    set_up()
    look = CASES[sys.argv[1]]()
    if look is None:
        print(json.dumps(None))
        return
    seen, judged = look
    words = [word._replace(fix=str(word.fix))._asdict() for word in seen.words]  # type: ignore[arg-type]
    print(json.dumps({**judged._asdict(), "fix": str(judged.fix), "words": words}))


if __name__ == "__main__":
    main()
