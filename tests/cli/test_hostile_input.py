"""What a command line, an environment or a file may try (issue 15): one clear, short line each, and nothing is done."""

from __future__ import annotations

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
