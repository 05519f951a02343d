"""Jobs that lead where a user has his own: nothing of it is opened, nobody waits, and no user changes a verdict."""

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.bootloader.hosts import wish
from tests.cli.places import needs_mounts, with_mounts
from tests.hosts.builder import build_named
from tests.nobody import as_user, needs_root
from tests.ran import Ran
from tests.starter import NOBODY
from tests.trees import write
from tunectl.host.refusals import OWNED

Run = Callable[..., Ran]
TUNERS = Path(__file__).parents[2] / "checks/test_tuners.py"
CHECK = ("check", "--window", "0.2", TUNERS, "--format", "json")
CRON = "check.other_tuners[cron]"
WRITES = "sysctl -w vm.swappiness=60"
# Below the directory that the words stand in.
HIS = f"""
mkdir home/bin; cd home/bin
mkfifo fifo; ln -s /dev/zero zero; ln -s /proc/kmsg kmsg; truncate -s 1T huge
printf '#!/bin/sh\\n{WRITES}\\n' > save; printf 'vm.swappiness = 60\\n' > conf; chmod 755 save
"""
LEADS = ("/proc/kmsg", "/dev/zero", *(f"@/home/bin/{name}" for name in ("fifo", "zero", "kmsg", "huge", "save")))
HIS_CRONTAB = "".join(f"* * * * * {word}\n" for word in (*LEADS, WRITES, "sysctl -p @/home/bin/fifo", "sh @/opt/save"))
_TIME = re.compile(r"20\d\d-\d\d-\d\dT[0-9:.]+Z")
OF_NOBODY = f"belongs to UID {NOBODY}, not to root"


def lay_scripts(place: Path) -> None:
    """What root has below /opt, and what nobody has made himself below /home."""
    (place / "home").mkdir(exist_ok=True)
    os.chown(place / "home", NOBODY, NOBODY)
    as_user(f"cd {place}\n{HIS}")
    for path in ("opt/save", "home/bin/roots"):
        write(place, path, f"#!/bin/sh\n{WRITES}\n")
        (place / path).chmod(0o755)
    (place / "opt/linked").symlink_to("../home/bin/save")


def lay_crontab(below: Path, user: int, name: str, text: str) -> None:
    """As crontab(1) leaves it."""
    write(below, f"spool/cron/crontabs/{name}", text)
    os.chown(below / f"spool/cron/crontabs/{name}", user, -1)
    (below / f"spool/cron/crontabs/{name}").chmod(0o600)
    (below / "spool/cron/crontabs").chmod(0o1730)


@pytest.fixture
def tree(public: Path) -> Path:
    """A recorded host with cron, on which a user has his own directory."""
    tree = build_named(public / "host", "lab4", tuned_boot=frozenset({2, 3}))
    write(tree, "usr/lib/systemd/system/cron.service", "[Service]\nExecStart=/usr/sbin/cron -f\n")
    write(tree, "etc/debian_version", "12.5\n")
    wish(tree, whole=True)
    lay_scripts(tree)
    return tree


def findings(ran: Ran) -> dict[str, Any]:
    """{target: (outcome, reason, fix)}."""
    return {one["target"]: (one["outcome"], one.get("reason", ""), one.get("fix", "")) for one in ran.json["findings"]}


@needs_root
def test_a_users_crontab_changes_no_verdict_and_holds_nothing_up(tree: Path, tunectl: Run) -> None:
    commands = (CHECK, ("plan",), ("show", "--format", "json"))
    before = [tunectl(*words, "--root", tree) for words in commands]
    assert CRON not in findings(before[0])
    lay_crontab(tree / "var", NOBODY, "nobody", HIS_CRONTAB.replace("@", ""))
    write(tree, "etc/cron.d/his", "@daily nobody /home/bin/save\n@daily nobody /home/bin/fifo\n")
    after = [tunectl(*words, "--root", tree) for words in commands]
    assert findings(after[0]) == findings(before[0])
    (planned, then), (still, now) = before[1:], after[1:]
    assert (still.code, _TIME.sub("", still.out)) == (planned.code, _TIME.sub("", planned.out))
    assert now.json["managers"] == then.json["managers"]


@needs_root
@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("/home/bin/save", f"/home/bin/save: not followed, because /home {OF_NOBODY}"),
        ("sh -c '/home/bin/roots'", f"/home/bin/roots: not followed, because /home {OF_NOBODY}"),
        ("/opt/linked", f"/opt/linked: not followed, because /home {OF_NOBODY}"),
        ("sysctl -p /home/bin/conf", f"/home/bin/conf: not followed, because /home {OF_NOBODY}"),
    ],
)
def test_what_root_runs_of_a_users_is_not_known_and_said_to_be_his(
    tree: Path, tunectl: Run, command: str, why: str
) -> None:
    lay_crontab(tree / "var", 0, "root", f"@daily {command}\n")
    outcome, reason, fix = findings(tunectl(*CHECK, "--root", tree))[CRON]
    assert (outcome, fix) == ("unreadable", str(OWNED))
    assert f"what may overwrite our knobs here is not known: {why}" in reason


@needs_root
def test_what_is_no_script_is_no_matter_and_roots_own_script_is_read(tree: Path, tunectl: Run) -> None:
    words = [word.replace("@", "") for word in LEADS if "save" not in word]
    crontab = "".join(f"@daily {word}\n" for word in (*words, "sysctl -p /home/bin/fifo"))
    lay_crontab(tree / "var", 0, "root", crontab)
    assert CRON not in findings(tunectl(*CHECK, "--root", tree))
    lay_crontab(tree / "var", 0, "root", f"{crontab}@daily /opt/save\n@daily /opt/linked\n")
    outcome, reason, _ = findings(tunectl(*CHECK, "--root", tree))[CRON]
    assert (outcome, "/opt/save:2 may write vm.swappiness = 60" in reason) == ("drifted", True)
    assert f"what else it does is not known: /opt/linked: not followed, because /home {OF_NOBODY}" in reason


@needs_root
@pytest.mark.parametrize("path", ["fifo", "save", "kmsg"])
def test_a_file_of_variables_that_a_profile_of_tuned_includes_is_not_a_users(
    tree: Path, tunectl: Run, path: str
) -> None:
    write(tree, "etc/systemd/system/tuned.service", "[Service]\nExecStart=/usr/sbin/tuned\n")
    write(tree, "sys/fs/cgroup/system.slice/tuned.service/cgroup.procs", "")
    write(tree, "etc/tuned/active_profile", "mine\n")
    write(tree, "etc/tuned/mine/tuned.conf", f"[variables]\ninclude=/home/bin/{path}\n[sysctl]\nkernel.panic=1\n")
    assert "tuned" in tunectl("show", "--root", tree).out
    found = findings(tunectl(*CHECK, "--root", tree)).get("check.other_tuners[tuned]", ("", "", ""))
    assert (f"/home/bin/save: not followed, because /home {OF_NOBODY}" in found[1]) is (path == "save")


LIVE = """
mount --bind "$1/etc" /etc; mount --bind "$1/spool" /var/spool; shift
run "$@"; run plan; run show --format json
"""


@pytest.fixture
def live() -> Iterator[Path]:
    """A directory of root's on this machine with the /etc and /var/spool that a mount namespace is to have."""
    place = Path(tempfile.mkdtemp(prefix="tunectl-live-", dir="/var/tmp"))
    place.chmod(0o755)
    with suppress(shutil.Error):  # a file of this machine that goes meanwhile
        shutil.copytree("/etc", place / "etc", symlinks=True)
    for path in ("cron.d", "crontab", "cron.hourly", "cron.daily", "cron.weekly", "cron.monthly"):
        shutil.rmtree(place / "etc" / path, ignore_errors=True)
    (place / "etc/crontab").write_text("")
    write(place, "etc/systemd/system/cron.service", "[Service]\nExecStart=/usr/sbin/cron -f\n")
    wish(place, isolated=str(max(os.sched_getaffinity(0))), whole=True)
    (place / "spool").mkdir()
    lay_scripts(place)
    yield place
    shutil.rmtree(place)


@pytest.mark.slow
@needs_mounts
@pytest.mark.parametrize("user", ["nobody", "root"])
def test_on_this_machine_too(live: Path, user: str) -> None:
    lay_crontab(live, NOBODY if user == "nobody" else 0, user, HIS_CRONTAB.replace("@", str(live)))
    check, plan, show = with_mounts(LIVE, live, *CHECK)
    assert (plan.code in (0, 1, 3), show.code) == (True, 0), (plan.err, show.err)
    found = findings(check)
    assert found, check.err
    if user == "nobody":
        assert CRON not in found
    else:
        assert found[CRON][0] == "drifted"
        assert f"{live}/opt/save:2 may write vm.swappiness = 60" in found[CRON][1]
        assert f"{live}/home/bin/save: not followed, because {live}/home {OF_NOBODY}" in found[CRON][1]
