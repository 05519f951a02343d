"""The tutorial's commands are the program's, and on a recorded host they end as the page says."""

import re
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.test_help import parse, words_of
from tests.hosts.builder import HostFactory
from tests.lab.product import EMULATED_BUDGET
from tests.lab.story import loosened
from tests.ran import Ran
from tests.tutorial import PAGE, Step, steps

STEPS = steps(PAGE.read_text())
# What a recorded host cannot do: be measured, run programs, boot.
NOT_RECORDED = ("preflight", "probe", "service", "monitor", "compare", "report", "--version")


def of_tunectl(step: Step) -> list[str]:
    """The words after `tunectl`; none of another program's."""
    words = words_of(step.command)
    return words[1:] if words[0] == "tunectl" else []


def test_each_line_says_how_it_ends() -> None:
    assert len(STEPS) > 25
    assert steps("# A\n```sh\nfalse  # exit 1: it fails\n```\n") == [Step("A", "false", (1,), "it fails")]
    with pytest.raises(ValueError, match="no `# exit N`"):
        steps("```sh\nfalse\n```")


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.command)
def test_each_command_is_taken_by_the_parser(step: Step, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    if (words := of_tunectl(step)) and words != ["--version"]:
        parse(words)


def test_followed_on_a_recorded_host_up_to_the_reboot_and_back(
    tunectl: Callable[..., Ran], host_root: HostFactory, tmp_path: Path
) -> None:
    root = host_root.fresh("lab4", tmp_path)
    reboots, done = 0, []
    for step in STEPS:
        reboots += step.command == "sudo reboot"
        words = of_tunectl(step)
        if not words or words[0] in NOT_RECORDED or (reboots == 1 and words[0] != "restore"):
            continue
        here = [word.replace("/etc/", f"{root}/etc/") for word in words]
        assert (step.command, tunectl(*here, env={"TUNECTL_ROOT": str(root)}).code) in [
            (step.command, code) for code in step.codes
        ]
        done.append(words[0])
    assert done == ["show", "propose", "propose", "plan", "apply", "verify", "restore", "restore", "verify"]


def test_the_lab_says_go_to_a_reader_by_the_limits_that_its_tests_have() -> None:
    """The tests waive the tick only where the spinners starve; a reader need not find that out."""
    (block,) = re.findall(r"^```toml\n(.*?)^```", (PAGE.parent / "lab.md").read_text(), re.MULTILINE | re.DOTALL)
    page = tomllib.loads(block)
    tests = tomllib.loads(loosened("[budget]\n" + "".join(f"{key} = 0\n" for key in EMULATED_BUDGET)))
    assert page["budget"] == tests["budget"] == EMULATED_BUDGET
    assert {one["knob"] for one in page["waivers"]} == {one["knob"] for one in tests["waivers"]} | {"check.tick_off"}
