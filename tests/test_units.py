"""The shipped units, read back by their real reader: systemd-analyze."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.test_help import ALL
from tests.monitor.process import running
from tunectl.bootloader.families import FAMILIES
from tunectl.cli.manuals.roff import title
from tunectl.errors import UsageError
from tunectl.knobs import KNOBS
from tunectl.knobs.drivers import exitlatency, hotplug
from tunectl.knobs.drivers.confined import UNSET
from tunectl.knobs.drivers.unitfile import render
from tunectl.units import SERVICES, ours, trial_units, try_units, units_of, warnings

PROGRAM = ("/opt/tunectl/bin/tunectl",)
EXPOSURES = {
    "tunectl-monitor.service": 2.0,
    "tunectl-latency.service": 2.0,
    "tunectl-apply.service": 5.0,
    "tunectl-repair.service": 5.0,
    "tunectl-preflight.service": 5.0,
    "tunectl-report.service": 3.0,
    "tunectl-reapply@.service": 5.0,
    "tunectl-return.service": 5.0,
    "tunectl-deadline.service": 5.0,
    "tunectl-try.service": 3.0,
    "tunectl-measures.service": 5.0,
}
needs_systemd = pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="needs systemd-analyze")


def written(place: Path, invocation: tuple[str, ...] = PROGRAM) -> list[Path]:
    """Every unit of every service, in a directory, with a program that is there."""
    (place / "bin").mkdir(parents=True, exist_ok=True)
    program = place / "bin/tunectl"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    paths = []
    for name in SERVICES:
        for unit in units_of(name, (str(program), *invocation[1:])):
            path = place / Path(unit.path).name
            path.write_text(unit.text)
            paths.append(path)
    for unit in (*trial_units((str(program), *invocation[1:]), "/var/lib/tunectl"), *try_units("0123abcd", 600)):
        paths.append(place / Path(unit.path).name)
        paths[-1].write_text(unit.text)
    paths.append(place / "tunectl-measures.service")  # the same unit as the one that only waits, with another text
    paths[-1].write_text(measuring(str(program)))
    return paths


def measuring(program: str = PROGRAM[0]) -> str:
    """The unit of a tried boot that preflight confirms."""
    return trial_units((program,), "/var/lib/tunectl", measures=True)[1].text


def key(text: str, name: str) -> list[str]:
    return [line.partition("=")[2] for line in text.splitlines() if line.startswith(f"{name}=")]


def test_every_unit_names_the_page_of_the_command_that_is_at_work(tmp_path: Path) -> None:
    texts = [*services().values(), *(path.read_text() for path in written(tmp_path))]
    for text in texts:
        (page,) = key(text, "Documentation")
        assert page in {f"man:{title(name)}(1)" for name in ALL}


@needs_systemd
def test_systemd_accepts_every_unit(tmp_path: Path) -> None:
    paths = written(tmp_path, (*PROGRAM, "--host", "/srv/a b/50%$x.toml"))
    command = ["systemd-analyze", "verify", "--man=no", *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True)
    said = [line for line in done.stderr.splitlines() if "tunectl" in line]
    assert (done.returncode, said) == (0, [])


@needs_systemd
@pytest.mark.parametrize(("more", "said"), [("", []), ("NoSuchKey=1\n", ["NoSuchKey"])])
def test_systemd_accepts_the_drop_in_by_which_the_monitor_reads_msrs(
    tmp_path: Path, more: str, said: list[str]
) -> None:
    """That of docs/cards.md, which closes every other device."""
    written(tmp_path)
    unit = tmp_path / "tunectl-monitor.service"
    drop_in = (Path(__file__).parents[1] / "docs/cards.md").read_text().partition("```ini\n")[2].partition("```")[0]
    (tmp_path / f"{unit.name}.d").mkdir()
    (tmp_path / f"{unit.name}.d/override.conf").write_text(drop_in + more)
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", str(unit)], capture_output=True, text=True)
    assert re.findall(r"Unknown key '?(\w+)", done.stderr) == said
    assert bool(done.stderr) == bool(said)
    command = ["systemd-analyze", "security", "--offline=true", "--no-pager", str(unit)]
    environment = {"SYSTEMD_COLORS": "0", "PATH": "/usr/bin:/bin"}
    shown = subprocess.run(command, capture_output=True, text=True, env=environment).stdout
    assert "device ACL with some special devices: char-cpu/msr:r" in shown


@needs_systemd
@pytest.mark.parametrize("name", EXPOSURES)
def test_every_unit_is_confined(tmp_path: Path, name: str) -> None:
    written(tmp_path)
    (tmp_path / "tunectl-latency.service").write_text(exitlatency.render(3))
    (tmp_path / "tunectl-reapply@.service").write_text(hotplug.render(PROGRAM))
    threshold = f"--threshold={EXPOSURES[name] * 10:.0f}"
    command = ["systemd-analyze", "security", "--offline=true", threshold, "--no-pager", str(tmp_path / name)]
    done = subprocess.run(command, capture_output=True, text=True, env={"SYSTEMD_COLORS": "0", "PATH": "/usr/bin:/bin"})
    assert done.returncode == 0, done.stdout[-400:] + done.stderr
    assert "Overall exposure level" in done.stdout


def services(invocation: tuple[str, ...] = PROGRAM) -> dict[str, str]:
    """The text of every service that we write or ship."""
    texts = {Path(unit.path).name: unit.text for name in SERVICES for unit in units_of(name, invocation)}
    of_a_trial = (*trial_units(invocation, "/var/lib/tunectl"), *try_units("0123abcd", 600))
    texts |= {Path(unit.path).name: unit.text for unit in of_a_trial}
    texts |= {"tunectl-measures.service": measuring(), "tunectl-latency.service": exitlatency.render(3)}
    texts |= {"tunectl-reapply@.service": hotplug.render(invocation)}
    return {name: text for name, text in texts.items() if name.endswith(".service")}


@pytest.mark.parametrize("name", EXPOSURES)
def test_no_boot_waits_for_a_unit_for_ever(name: str) -> None:
    """A oneshot service has no limit of its own (systemd.service(5), TimeoutStartSec=); what is left is killed."""
    assert services().keys() == EXPOSURES.keys()
    text = services()[name]
    (start,), (stop,) = key(text, "TimeoutStartSec"), key(text, "TimeoutStopSec")
    assert 0 < int(start) <= 900
    assert 0 < int(stop) <= 60
    for default in ("KillMode", "SendSIGKILL", "KillSignal"):  # SIGTERM, then SIGKILL, to all of its control group
        assert key(text, default) == []
    waits = re.findall(r"--wait (\d+)|/bin/sleep (\d+)", text)
    assert sum(int(number) for wait in waits for number in wait if number) < int(start) / 2


@pytest.mark.parametrize("name", EXPOSURES)
def test_every_unit_keeps_the_environment_out(name: str) -> None:
    assert UNSET in services()[name].splitlines()


def test_an_interpreter_of_a_home_is_not_hidden() -> None:
    (unit,) = units_of("monitor", ("/usr/bin/python3", "-EP", "/home/me/.local/bin/tunectl"))
    assert key(unit.text, "ProtectHome") == ["read-only"]
    assert (
        "/home/me/.local/bin/tunectl"
        in warnings("monitor", ("/usr/bin/python3", "-EP", "/home/me/.local/bin/tunectl"))[0]
    )


def test_the_monitor_sees_what_it_must() -> None:
    """What would blind it is not set: /proc/interrupts, others' affinity, the kernel's events, its own CPUs."""
    (unit,) = units_of("monitor", PROGRAM)
    assert "subset=pid" not in unit.text
    for name in ("ProcSubset", "ProtectProc", "PrivateNetwork", "IPAddressDeny", "ProtectClock"):
        assert key(unit.text, name) == []
    assert "AF_NETLINK" in key(unit.text, "RestrictAddressFamilies")[0]
    assert key(unit.text, "SystemCallFilter")[-1] == "sched_setaffinity adjtimex clock_adjtime"
    assert (key(unit.text, "Type"), key(unit.text, "NotifyAccess")) == (["notify"], ["main"])
    assert key(unit.text, "ExecStart") == ["/opt/tunectl/bin/tunectl monitor"]


def test_what_writes_the_host_may_write_it() -> None:
    for name in ("apply", "repair"):
        for unit in units_of(name, PROGRAM):
            assert "ProtectKernelTunables" not in unit.text
            assert "ProtectControlGroups" not in unit.text


def read_only(text: str, path: str) -> bool:
    """May the unit not write there? Source: systemd.exec(5), ProtectSystem=strict, ReadWritePaths=."""
    assert key(text, "ProtectSystem") == ["strict"]
    (words,) = key(text, "ReadWritePaths")
    places = [word.lstrip("-") for word in shlex.split(words.replace("%%", "%"))]
    return not any(f"{path}/".startswith(f"{place}/") for place in (*places, "/proc", "/sys", "/dev"))


PLACES_OF_BOOT_FILES = ("/boot/grub/grub.cfg.new", "/boot/firmware/cmdline.txt", "/efi/loader/entries/x.conf")


@pytest.mark.parametrize("state", ["/var/lib/tunectl", "/srv/a b/50%/state"])
def test_no_path_that_the_tables_write_is_read_only_to_the_units(state: str) -> None:
    """Every file a driver names, the drop-in of each boot loader, what update-grub replaces, and the state."""
    invocation = (*PROGRAM, *(() if state.startswith("/var") else ("--state", state)))
    named = {path for knob in KNOBS.values() for path in knob.driver.describe() if path.startswith("/")}
    boots = {f"/{path}" for one in FAMILIES.values() for path in one.files if path.startswith(("etc", "boot", "efi"))}
    assert len(named) > 60
    assert any(path.startswith("/etc/default/grub") for path in boots)
    units = [unit for name in ("apply", "repair") for unit in units_of(name, invocation)]
    texts = [unit.text for unit in units if unit.path.endswith(".service")]
    texts += [unit.text for unit in trial_units(invocation, state)]
    for text in (*texts, hotplug.render(invocation)):
        wanted = {*named, *boots, *PLACES_OF_BOOT_FILES, "/run/lock/lvm", f"{state}/journal.jsonl", state}
        assert [path for path in sorted(wanted) if read_only(text, path)] == []
        assert read_only(text, "/usr/bin/tunectl")
        assert read_only(text, "/srv/other")


def test_what_takes_a_change_back_needs_its_journal_and_its_program_and_no_network() -> None:
    returns, waits = trial_units(("/opt/a b/tunectl", "--state", "/srv/state"), "/srv/state")
    assert key(returns.text, "RequiresMountsFor") == ['/srv/state "/opt/a b"']
    assert key(returns.text, "DefaultDependencies") == ["no"]
    assert key(returns.text, "ExecStart") == ['"/opt/a b/tunectl" --state /srv/state deadline --boot']
    assert {"network-pre.target", "tunectl-apply.service"} <= {
        word for words in key(returns.text, "Before") for word in words.split()
    }
    assert key(waits.text, "Restart") == ["on-failure"]


def test_what_judges_a_tried_boot_may_measure_and_reach_others() -> None:
    waits, measures = trial_units(PROGRAM, "/var/lib/tunectl")[1].text, measuring()
    assert "CAP_IPC_LOCK" in " ".join(key(measures, "CapabilityBoundingSet"))
    assert "char-cpu/msr r" in key(measures, "DeviceAllow")
    assert "AF_INET" in key(measures, "RestrictAddressFamilies")[0]
    assert key(measures, "IPAddressDeny") == []
    assert "CAP_IPC_LOCK" not in " ".join(key(waits, "CapabilityBoundingSet"))
    assert key(waits, "IPAddressDeny") == ["any"]


def test_what_boots_a_tried_boot_again_is_systemds_alone() -> None:
    timer, service = try_units("0123abcd", 600)
    assert key(timer.text, "OnBootSec") == ["600"]
    assert key(service.text, "ExecStart") == ["/usr/bin/systemctl --force reboot"]
    assert key(service.text, "FailureAction") == ["reboot-force"]
    assert not {"PrivateDevices", "PrivateTmp"} & {line.partition("=")[0] for line in service.text.splitlines()}
    for unit in (timer, service):
        assert key(unit.text, "ConditionKernelCommandLine") == ["tunectl.try=0123abcd"]
        assert key(unit.text, "RequiresMountsFor") == []


def test_a_command_below_tmp_is_not_hidden_from_apply() -> None:
    (unit,) = units_of("apply", ("/tmp/venv/bin/tunectl",))
    assert key(unit.text, "PrivateTmp") == ["no"]


@pytest.mark.parametrize("name", SERVICES)
@pytest.mark.parametrize("bad", ["\n", "\r", "\x1b", "\x7f", "\u2028", "\udcff"])
@pytest.mark.parametrize("option", ["--host", "--state"])
def test_no_word_ends_the_line_it_stands_in(name: str, bad: str, option: str) -> None:
    evil = f"/etc/x{bad}ExecStartPre=/bin/evil"
    with pytest.raises(UsageError, match="control character") as caught:
        units_of(name, (*PROGRAM, option, evil))
    assert str(caught.value).isprintable()
    with pytest.raises(UsageError):
        hotplug.render((*PROGRAM, option, evil))


def test_apply_has_one_text() -> None:
    """The knob systemd.apply_at_boot and this command write the same file, but for the line that says which did."""
    (unit,) = units_of("apply", PROGRAM)
    (mark, *service), (other, *knobs) = unit.text.split("\n"), render(PROGRAM).split("\n")
    assert service == knobs
    assert mark.startswith("# Written by `tunectl service`")
    assert other.startswith("# Written by `tunectl apply`")


def test_the_monitor_asks_where_the_path_unit_listens() -> None:
    from tunectl.monitor.repair import REQUEST

    path, service = units_of("repair", PROGRAM)
    (monitor,) = units_of("monitor", PROGRAM, ("--repair",))
    assert key(path.text, "PathChanged") == [f"/run/{key(monitor.text, 'RuntimeDirectory')[0]}/{REQUEST}"]
    assert key(monitor.text, "ExecStart") == ["/opt/tunectl/bin/tunectl monitor --repair"]
    assert key(service.text, "ExecStart") == ["/opt/tunectl/bin/tunectl apply --yes --runtime --unless-worse"]


def test_words_of_the_command_line_are_systemds() -> None:
    (unit,) = units_of("monitor", ("/opt/a b/tunectl", "--host", "/etc/50%/$x.toml"))
    assert key(unit.text, "ExecStart") == ['"/opt/a b/tunectl" --host /etc/50%%/$$x.toml monitor']


@pytest.mark.parametrize("program", ["/home/me/venv/bin/tunectl", "/tmp/venv/bin/tunectl", "/root/bin/tunectl"])
def test_a_place_the_unit_would_hide(program: str) -> None:
    (unit,) = units_of("monitor", (program,))
    hidden = {*key(unit.text, "ProtectHome"), *key(unit.text, "PrivateTmp")}
    assert hidden == ({"yes", "no"} if program.startswith("/tmp") else {"read-only", "yes"})
    assert "install tunectl below /opt or /usr" in warnings("monitor", (program,))[0]
    assert warnings("monitor", PROGRAM) == []


def test_ours_and_others() -> None:
    assert all(ours(unit.text) for name in SERVICES for unit in units_of(name, PROGRAM))
    assert not ours("[Unit]\nDescription=mine\n")
    with pytest.raises(UsageError, match="no service"):
        units_of("x", PROGRAM)


WITHOUT_WX = "import ctypes, os, sys; ctypes.CDLL(None).prctl(65, 1, 0, 0, 0); os.execvp(sys.argv[1], sys.argv[1:])"


@needs_systemd
@pytest.mark.skipif(not shutil.which("strace"), reason="needs strace")
@pytest.mark.slow
def test_the_monitor_needs_no_system_call_that_its_unit_refuses(tmp_path: Path) -> None:
    """With a sentinel, a socket, an endpoint, a textfile, a webhook and a hook; and no page both W and X."""
    host_file, trace = tmp_path / "host.toml", tmp_path / "trace"
    last = max(os.sched_getaffinity(0))
    host_file.write_text(
        f'profile = "low-latency"\nisolated = "{last}"\nallow_split_siblings = true\n[monitor]\ninterval_s = 0.2\n'
        f'[monitor.prometheus]\nlisten = "127.0.0.1:0"\ntextfile = "{tmp_path}/x.prom"\n'
        f'[monitor.sentinel]\ncpu = {last}\n[monitor.sla]\nsocket = "{tmp_path}/latency"\n'
        '[[monitor.webhooks]]\nurl = "http://127.0.0.1:9/"\n[[monitor.hooks]]\ncommand = ["/bin/cat"]\n'
    )
    strace = ["strace", "-f", "-qq", "-o", str(trace)]
    words = ["--host", str(host_file), "--state", str(tmp_path / "state"), "--duration", "4"]
    wrapped = [sys.executable, "-c", WITHOUT_WX, *strace]
    with running(Path("/"), tmp_path / "run", *words, wrapped=wrapped) as monitor:
        assert monitor.process.wait(60) in (0, 3)
    used = set(re.findall(r"^\d+ +([a-z_0-9]+)\(", trace.read_text(), re.MULTILINE))
    assert {"sched_setaffinity", "bind", "execve"} <= used
    # As root, and only then, SQLite gives its journal the owner of the database; the unit runs as a user of its own.
    assert key(units_of("monitor", PROGRAM)[0].text, "DynamicUser") == ["yes"]
    assert used - permitted(units_of("monitor", PROGRAM)[0].text) <= ({"fchown"} if os.geteuid() == 0 else set())


@needs_systemd
@pytest.mark.skipif(not shutil.which("strace"), reason="needs strace")
@pytest.mark.slow
def test_preflight_needs_no_system_call_that_the_unit_of_a_tried_boot_refuses(tmp_path: Path) -> None:
    trace, preflight = tmp_path / "trace", ["preflight", "-v", "--intrude", "--duration", "1", "--window", "0.2"]
    program = [sys.executable, "-c", "from tunectl.cli.main import main; main()", "--state", str(tmp_path)]
    strace = [sys.executable, "-c", WITHOUT_WX, "strace", "-f", "-qq", "-o", str(trace)]
    done = subprocess.run([*strace, *program, *preflight], capture_output=True, text=True)
    assert "Thermal" in done.stdout, done.stderr
    used = set(re.findall(r"^\d+ +([a-z_0-9]+)\(", trace.read_text(), re.MULTILINE))
    assert {"mlockall", "execve"} <= used
    assert used <= permitted(measuring())


def permitted(text: str) -> set[str]:
    """The system calls of a unit's filter, as this systemd knows the groups."""
    listed = subprocess.run(["systemd-analyze", "syscall-filter", "--no-pager"], capture_output=True, text=True).stdout
    groups: dict[str, list[str]] = {}
    for line in listed.splitlines():
        if line.startswith("@"):
            groups[line.strip()] = []
        elif line.startswith("    ") and not line.strip().startswith("#"):
            groups[list(groups)[-1]].append(line.strip())

    def calls(name: str) -> set[str]:
        return set().union(*(calls(one) if one.startswith("@") else {one} for one in groups[name]))

    found = calls("@default")
    for words in key(text, "SystemCallFilter"):
        named = [calls(one) if one.startswith("@") else {one} for one in words.removeprefix("~").split()]
        found = found - set().union(*named) if words.startswith("~") else found.union(*named)
    return found
