"""What a command line, an environment or a file may try (issue 15): one clear, short line each, and nothing is done."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.places import complaint
from tests.conftest import LOW_LATENCY, write_host_file
from tests.ran import Ran
from tests.trees import differences, picture

Run = Callable[..., Ran]
EVIL = "x\nExecStartPre=/bin/evil"


@pytest.mark.parametrize("given", ["--host", "--state", "TUNECTL_HOST", "TUNECTL_STATE"])
def test_a_newline_never_becomes_a_directive(tunectl: Run, lab4: Path, given: str) -> None:
    before = picture(lab4)
    environment, words = ({given: EVIL}, []) if given.startswith("TUNECTL") else ({}, [given, EVIL])
    for command in (["service", "install", "apply"], ["apply", "--yes"], ["service", "show", "monitor"]):
        line = complaint(tunectl(*command, "--root", lab4, *words, env=environment), 2)
        assert line.startswith(f"--{given.rpartition('_')[2].lower().strip('-')}: has the control character \\n")
    assert not differences(before, lab4)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ('profile = "x\\nExecStartPre=/bin/evil.toml"\nisolated = "2-3"\n', "profile"),
        (f'{LOW_LATENCY}[[monitor.hooks]]\ncommand = ["/bin/x\\ny"]\n', "monitor.hooks[0].command[0]"),
        (f'{LOW_LATENCY}[network]\ninterfaces = ["eth0\\u001b"]\n', "network.interfaces[0]"),
        (f'{LOW_LATENCY}[knobs]\n"boot.mitigations" = "off\\nquiet"\n', "knobs.boot.mitigations"),
        (f'{LOW_LATENCY}[knobs]\n"cpufreq.governor" = "perf\\u0001"\n', "knobs.cpufreq.governor"),
    ],
)
def test_no_text_of_a_host_file_has_control_characters(tunectl: Run, lab4: Path, text: str, key: str) -> None:
    write_host_file(lab4, text)
    assert f": {key}: has the control character \\" in complaint(tunectl("verify", "--root", lab4), 2)


def test_prose_and_the_arguments_of_a_hook_may_have_newlines(tunectl: Run, lab4: Path) -> None:
    waiver = '[[waivers]]\nknob = "mm.ksm"\nreason = """one\n\ttwo"""\nuntil = 2099-01-01\n'
    hook = '[[monitor.hooks]]\ncommand = ["/bin/sh", "-c", "cat\\nexit 0"]\n'
    write_host_file(lab4, LOW_LATENCY + waiver + hook)
    assert tunectl("verify", "--root", lab4).code == 3


def test_a_recorded_hosts_profile_is_a_file_of_that_host(tunectl: Run, lab4: Path, tmp_path: Path) -> None:
    """What the machine tunectl runs on has in that place is another file; a link leads nowhere out of the tree."""
    outside = tmp_path / "site.toml"
    outside.write_text('[knobs."mm.swappiness"]\nvalue = 7\nreason = "the machine\'s own"\n')
    inside = lab4 / "etc/tunectl/site.toml"
    for name in (str(outside), "../../../../../../../../.." + str(outside), "link.toml"):
        write_host_file(lab4, f'profile = "{name}"\nisolated = "2-3"\n')
        (lab4 / "etc/tunectl/link.toml").unlink(missing_ok=True)
        (lab4 / "etc/tunectl/link.toml").symlink_to(outside)
        line = complaint(tunectl("verify", "--root", lab4), 2)
        assert f"cannot read {lab4}/" in line
    inside.write_text(outside.read_text())
    write_host_file(lab4, 'profile = "/etc/tunectl/site.toml"\nisolated = "2-3"\n')
    found = tunectl("verify", "--root", lab4, "--format", "json").json["findings"]
    assert [one["desired"] for one in found if one["knob"] == "mm.swappiness"] == [7]
    elsewhere = tmp_path / "host.toml"  # one that the operator named is this machine's, and so is what it names
    elsewhere.write_text(f'profile = "{outside}"\nisolated = "2-3"\n')
    assert tunectl("verify", "--root", lab4, "--host", elsewhere).code == 3


# --- files that never answer, never end, or hold what no kernel writes


@pytest.mark.parametrize("words", ["verify", "plan", "apply --yes", "check", "show", "monitor --once"])
def test_a_fifo_where_the_host_file_should_be(tunectl: Run, lab4: Path, words: str) -> None:
    (lab4 / "etc/tunectl/host.toml").unlink()
    os.mkfifo(lab4 / "etc/tunectl/host.toml")
    before = picture(lab4)
    line = complaint(tunectl(*words.split(), "--root", lab4), 2)
    assert line == f"cannot read {lab4}/etc/tunectl/host.toml: not a regular file"
    assert not differences(before, lab4)


HUGE = 11 << 30


@pytest.mark.parametrize(
    ("path", "code", "said"),
    [
        ("etc/tunectl/host.toml", 2, "host.toml: is larger than 1 MiB (no host file and no profile is)"),
        ("var/lib/tunectl/journal.jsonl", 1, "journal.jsonl: is larger than 64 MiB"),
    ],
)
def test_a_huge_file_is_not_read_to_its_end(tunectl: Run, lab4: Path, path: str, code: int, said: str) -> None:
    (lab4 / path).parent.mkdir(parents=True, exist_ok=True)
    with (lab4 / path).open("ab") as file:
        file.truncate(HUGE)
    assert complaint(tunectl("verify", "--root", lab4), code).endswith(said)


def test_a_huge_file_of_the_host_is_unreadable_and_the_rest_is_judged(tunectl: Run, lab4: Path) -> None:
    paths = ("proc/interrupts", "etc/default/grub", "etc/sysctl.d/90-x.conf", "sys/kernel/mm/ksm/run")
    for path in paths:
        (lab4 / path).parent.mkdir(parents=True, exist_ok=True)
        with (lab4 / path).open("ab") as file:
            file.truncate(HUGE)
    done = tunectl("verify", "--root", lab4, "--format", "json")
    assert (done.code, done.err) == (3, "")
    assert len(done.json["findings"]) > 30


def test_devices_and_endless_files_are_no_profiles(tunectl: Run, lab4: Path, tmp_path: Path) -> None:
    """Of a host file that the operator names; one in the tree names a file of the tree."""
    host = tmp_path / "host.toml"
    for name in ("/dev/zero", "/dev/tty", "/proc/kmsg", str(tmp_path)):
        host.write_text(f'profile = "{name}/"\nisolated = "2-3"\n'.replace('/"', '"'))
        assert complaint(tunectl("verify", "--root", lab4, "--host", host), 2).startswith(f"cannot read {name}: ")
    write_host_file(lab4, 'profile = "/dev/zero"\nisolated = "2-3"\n')
    said = complaint(tunectl("verify", "--root", lab4), 2)
    assert said.endswith(f"profile: cannot read {lab4}/dev/zero: No such file or directory")


def test_a_fifo_beside_a_file_to_be_written_is_not_waited_for(tunectl: Run, lab4: Path) -> None:
    os.mkfifo(lab4 / "proc/sys/vm/swappiness.tunectl-tmp")
    done = tunectl("apply", "--yes", "--root", lab4, "--format", "json")
    assert done.code in (0, 1, 3, 4)
    assert tunectl("restore", "--root", lab4).code == 0


@pytest.mark.parametrize("text", ["9" * 5000, "9" * 99, "x" * 5116, "\x1b[2J" * 900])
def test_what_no_kernel_writes_is_unreadable_in_a_short_line(tunectl: Run, lab4: Path, text: str) -> None:
    for path in ("proc/sys/vm/swappiness", "sys/kernel/mm/ksm/run", "sys/kernel/mm/transparent_hugepage/enabled"):
        (lab4 / path).write_text(f"{text}\n")
    done = tunectl("verify", "--root", lab4, "--format", "json")
    found = {one["knob"]: one for one in done.json["findings"]}
    assert found["mm.swappiness"]["outcome"] == "unreadable"
    for name in ("mm.swappiness", "mm.thp_enabled"):
        assert len(found[name]["reason"]) < 400, found[name]


@pytest.mark.parametrize(
    "text",
    [
        f'profile = "{"x" * 5116}"\nisolated = "2-3"\n',
        f'profile = "low-latency"\nisolated = "{"9" * 5116}"\n',
        f'profile = "low-latency"\nisolated = "{"9, " * 1700}"\n',
        f"{LOW_LATENCY}{'x' * 5116} = 1\n",
        f"{LOW_LATENCY}x = {'9' * 5116}\n",
        f'{LOW_LATENCY}bootloader = "{"x" * 5116}"\n',
        f'{LOW_LATENCY}[knobs]\n"mm.swappiness" = "{"x y" * 1700}"\n',
        f'{LOW_LATENCY}[monitor.prometheus]\nlisten = "{"x" * 5116}"\n',
        f'{LOW_LATENCY}[[waivers]]\nknob = "mm.ksm"\ntarget = "{"x" * 5116}"\nreason = "r"\nuntil = "{"x" * 5116}"\n',
    ],
)
def test_a_bad_value_is_echoed_by_its_beginning(tunectl: Run, lab4: Path, text: str) -> None:
    write_host_file(lab4, text)
    line = complaint(tunectl("verify", "--root", lab4), 2)
    assert len(line) < 700 + len(str(lab4))
    assert "characters)" in line or "Exceeds" in line or "Invalid" in line


def test_an_option_is_echoed_by_its_beginning(tunectl: Run, lab4: Path) -> None:
    for words in (["--host", "x" * 5116], ["--format", "z" * 5116]):
        line = complaint(tunectl("verify", "--root", lab4, *words), 2)
        assert len(line) < 700
