"""docs/tutorial.md typed line by line, as it stands, by a user who may sudo, on an untuned server."""

from pathlib import Path

import pytest

from tests.tutorial import PAGE, Step, steps

from .lab import Lab

pytestmark = pytest.mark.long
USER = "ops"


def typed(lab: Lab, step: Step) -> tuple[int, str]:
    """How the line ended, and what it printed."""
    if step.command == "sudo reboot":  # ssh would tell that the host went away
        lab.reboot()
        return 0, ""
    done = lab.run(step.command, user=USER, check=False, timeout=1200)
    return done.code, done.out + done.err


def test_each_line_ends_as_the_page_says(fresh_lab: Lab, package: Path) -> None:
    fresh_lab.put(package, f"/home/{USER}/{package.name}")
    wrong = []
    for step in steps(PAGE.read_text()):
        code, printed = typed(fresh_lab, step)
        if code not in step.codes or "Traceback" in printed:
            wrong.append(f"{step.section}: {step.command}: exit {code}\n{printed}")
    assert not wrong, "\n".join(wrong)
