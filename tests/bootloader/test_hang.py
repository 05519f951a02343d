"""What ends a hang of the next boot: the machine's watchdogs, who feeds them, and the words of a tried line."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.bootloader.hosts import host
from tests.bootloader.trees import write
from tests.ran import Ran
from tests.trees import picture
from tests.tuned import apply, restore
from tests.tuning.test_tryboot_loaders import wanting
from tunectl.bootloader.hang import DRACUT, PANIC, covers
from tunectl.bootloader.oneshot import tried_line
from tunectl.host.ask import ANSWERS, WATCHDOG

ID = "1a2b3c4d"
UNFED = {f"{ANSWERS}/{WATCHDOG.name}": "RuntimeWatchdogUSec=0\n"}
FED = {f"{ANSWERS}/{WATCHDOG.name}": "RuntimeWatchdogUSec=1min\n"}
OLD_IPMI = {"sys/class/misc/watchdog/dev": "10:130\n", "sys/module/ipmi_watchdog/initstate": "live\n"}


def device(identity: str, state: str, timeout: str, number: int = 0) -> dict[str, str]:
    """A watchdog as sysfs shows it."""
    place = f"sys/class/watchdog/watchdog{number}"
    return {f"{place}/identity": identity, f"{place}/state": state, f"{place}/timeout": timeout}


IDLE = device("iTCO_wdt\n", "inactive\n", "30\n")
NOTHING = ("nothing", "", None)
# files -> what ends a hang from the reset on, and what does from user space on
HOSTS: dict[str, tuple[Mapping[str, str], str, tuple[str, str, int | None]]] = {
    "none": (UNFED, "nothing", NOTHING),
    "fed by systemd": (device("i6300ESB timer\n", "active\n", "60\n") | FED, "nothing",
                       ("watchdog", "i6300ESB timer", 60)),
    "free": (IDLE | UNFED, "nothing", ("line", "systemd.watchdog_sec=30", 30)),
    "free, with the BMC's": (IDLE | device("IPMI\n", "active\n", "300\n", 1) | UNFED, "bmc", ("watchdog", "IPMI", 300)),
    "the BMC's, not running": (device("IPMI\n", "inactive\n", "10\n") | UNFED, "nothing", NOTHING),
    "the BMC's, in no class": (OLD_IPMI | UNFED, "unknown", ("unknown", "IPMI", None)),
    "too short for a slow boot": (device("SBSA\n", "inactive\n", "10\n") | UNFED, "nothing", NOTHING),
    "two, and which is meant is not known": (IDLE | device("hpwdt\n", "inactive\n", "30\n", 1) | UNFED, "nothing",
                                             NOTHING),
    "of software": (device("Software Watchdog\n", "active\n", "60\n") | FED, "nothing", NOTHING),
    "of software beside a free one": (IDLE | device("Software Watchdog\n", "inactive\n", "60\n", 1) | UNFED, "nothing",
                                      ("line", "systemd.watchdog_sec=30", 30)),
    "configured for systemd, and idle": (IDLE | FED, "nothing", NOTHING),
    "without attributes": ({"sys/class/watchdog/watchdog0/dev": "249:0\n"} | UNFED, "nothing",
                           ("unknown", "watchdog0", None)),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTS)
def test_what_ends_a_hang(name: str, tmp_path: Path) -> None:
    files, early, late = HOSTS[name]
    found = {cover.phase: cover for cover in covers(write(tmp_path, files))}
    assert list(found) == ["loader", "kernel", "panic", "initramfs", "userspace"]
    assert [found["loader"].by, found["kernel"].by] == [early, early]
    assert (found["userspace"].by, found["userspace"].what, found["userspace"].seconds) == late
    assert (found["panic"].what, found["panic"].seconds) == (PANIC, 30)


@pytest.mark.parametrize("name", HOSTS)
def test_the_tried_line_has_systemd_feed_a_watchdog_where_it_may(name: str, tmp_path: Path) -> None:
    files, _, (by, what, _) = HOSTS[name]
    line = tried_line(write(tmp_path, files), "ro", (), lambda key, one, other: one == other, ID)
    assert line.removeprefix(f"ro tunectl.try={ID} {PANIC}").strip() == {"line": what}.get(by, "")


@pytest.mark.parametrize(
    ("line", "words", "seconds"),
    [("ro panic=5", "panic=5", 5), ("ro panic=-1", "panic=-1", 0), ("ro panic=5 panic=0", PANIC, 30)],
)
def test_an_operators_own_words_for_a_panic(line: str, words: str, seconds: int, tmp_path: Path) -> None:
    files = {"proc/cmdline": f"{line}\n", "usr/sbin/update-initramfs": "", **UNFED}
    found = {cover.phase: cover for cover in covers(write(tmp_path, files))}
    assert (found["panic"].what, found["panic"].seconds, found["initramfs"].what) == (words, seconds, words)


def test_plan_says_it_where_it_asks_for_a_boot(tunectl: Callable[..., Ran], tmp_path: Path) -> None:
    tree = host(tmp_path, "bls")
    write(tree, UNFED)
    planned = tunectl("plan", "--root", tree, "--format", "json").json
    assert [cover["phase"] for cover in planned["hang"]] == ["loader", "kernel", "panic", "initramfs", "userspace"]
    apply(tree)
    assert tunectl("plan", "--root", tree, "--format", "json").json["hang"] == []


def test_a_recording_that_does_not_tell_says_nothing(tmp_path: Path) -> None:
    assert covers(write(tmp_path, IDLE)) == []


@pytest.mark.parametrize(
    ("path", "by", "words"),
    [
        ("usr/sbin/update-initramfs", "line", PANIC),
        ("usr/lib/dracut/skipcpio", "line", DRACUT),
        ("usr/bin/mkinitcpio", "unknown", ""),
    ],
)
def test_what_ends_the_prompt_of_an_initramfs(path: str, by: str, words: str, tmp_path: Path) -> None:
    prompt = next(cover for cover in covers(write(tmp_path, {path: "", **UNFED})) if cover.phase == "initramfs")
    assert (prompt.by, prompt.what) == (by, words)


@pytest.mark.parametrize(("watchdog", "code"), [({}, 1), (IDLE, 4)])
def test_without_a_watchdog_a_boot_is_tried_where_that_is_said(
    watchdog: Mapping[str, str], code: int, tunectl: Callable[..., Ran], tmp_path: Path
) -> None:
    tree = wanting("bls", tmp_path)
    write(tree, {**watchdog, **UNFED})
    before = picture(tree)
    tried = ("apply", "--try-boot", "--root", tree)
    assert tunectl(*tried).code == code
    assert (picture(tree) == before) is (code == 1)
    restore(tree)
    assert tunectl(*tried, "--without-watchdog").code == 4
