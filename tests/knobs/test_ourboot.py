"""Did our own service do its work on this boot, and what do drop-ins declare for it that no boot has tried?"""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.knobs.test_unitfile import DROP_IN, INVOCATION, linked, of_the_service, typed, written
from tests.trees import write
from tests.tuned import apply, judged
from tunectl.host.ask import ANSWERS, SHOW, UNITS, UnitState, parse_states
from tunectl.host.sysroot import Sysroot
from tunectl.knobs.drivers.hotplug import UNIT as REAPPLY
from tunectl.knobs.drivers.ourboot import is_failed, was_tried
from tunectl.knobs.drivers.unitfile import LINK, UNIT, render

NAME = "tunectl-apply.service"
AGAIN = f"sudo systemctl restart {NAME}"
RAN = {
    "LoadState": "loaded",
    "ActiveState": "active",
    "Result": "success",
    "ExecMainStatus": "0",
    "ConditionResult": "yes",
    "ConditionTimestampMonotonic": "2000000",
    "AssertResult": "yes",
    "InactiveExitTimestampMonotonic": "2000000",
    "ActiveEnterTimestampMonotonic": "3000000",
}
NEVER = {"ActiveState": "inactive", "InactiveExitTimestampMonotonic": "0", "ConditionTimestampMonotonic": "0"}


def shown(name: str, **properties: str) -> str:
    return "".join(f"{key}={value}\n" for key, value in {"Names": name, **RAN, **properties}.items())


def state(**properties: str) -> UnitState:
    return parse_states(shown(NAME, **properties))[NAME]


def answered(*units: str) -> Callable[[Path], object]:
    """What systemd says of these; nothing else changes on the host."""
    return written(f"{ANSWERS}/{SHOW.name}", "\n".join(units))


@pytest.fixture
def booted(applied4: Path) -> Path:
    """The recorded host, tuned in an earlier boot."""
    write(applied4, "proc/sys/kernel/random/boot_id", "11111111-2222-3333-4444-555555555555\n")
    return applied4


THIS_BOOT = [
    pytest.param(shown(NAME, **NEVER), "not run", id="never begun"),
    pytest.param(shown(NAME, ActiveState="failed", Result="signal"), "failed", id="failed"),
    pytest.param(shown(NAME, ActiveState="inactive", ConditionResult="no"), "conditional", id="a condition"),
    pytest.param(shown(NAME, ActiveState="inactive", AssertResult="no"), "conditional", id="an assertion"),
    pytest.param(shown(NAME, LoadState="bad-setting", **NEVER), "broken", id="not to be loaded"),
    pytest.param(
        "\n".join(
            (
                shown(NAME),
                shown("systemd-sysctl.service", ActiveEnterTimestampMonotonic="2500000"),
                shown("multi-user.target", ActiveEnterTimestampMonotonic="9000000"),
            )
        ),
        "too early",
        id="before sysctl",
    ),
]


@pytest.mark.parametrize(("answer", "observed"), THIS_BOOT)
def test_what_went_wrong_in_this_boot_is_named_and_ends_with_another_run(
    booted: Path, answer: str, observed: str
) -> None:
    answered(answer)(booted)
    finding = of_the_service(booted)
    assert (finding.outcome, finding.observed, str(finding.fix)) == ("drifted", observed, AGAIN)
    answered(shown(NAME))(booted)  # what a run does
    assert of_the_service(booted).outcome == "compliant"


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param("", id="nobody was asked"),
        pytest.param(shown("irqbalance.service"), id="of another"),
        pytest.param(shown(NAME), id="it ran"),
        pytest.param(shown(NAME, ActiveState="inactive"), id="it ran, and was stopped"),
        pytest.param(shown(NAME, ActiveState="activating", Job="12"), id="it runs now"),
        pytest.param(shown(NAME, ActiveState="failed", Result="exit-code", ExecMainStatus="3"), id="drift is named"),
        pytest.param(
            "\n".join((shown(NAME), shown("systemd-sysctl.service", ActiveEnterTimestampMonotonic="1900000"))),
            id="after sysctl",
        ),
        pytest.param(
            "\n".join(
                (
                    shown(NAME),
                    shown("tuned.service", ActiveEnterTimestampMonotonic="99000000"),
                    shown("multi-user.target", ActiveEnterTimestampMonotonic="9000000"),
                )
            ),
            id="started again long after the boot",
        ),
    ],
)
def test_a_boot_in_which_it_did_its_work_is_no_matter(booted: Path, answer: str) -> None:
    answered(answer)(booted)
    assert of_the_service(booted).outcome == "compliant"


def test_a_start_that_waits_is_not_known(booted: Path) -> None:
    answered(shown(NAME, **NEVER, Job="12"))(booted)
    assert of_the_service(booted).outcome == "unreadable"


def test_without_an_answer_the_link_that_systemd_makes_of_a_run_counts(booted: Path) -> None:
    (booted / "run/systemd/units").mkdir(parents=True)
    assert of_the_service(booted).observed == "not run"
    linked(INVOCATION, "0123456789abcdef")(booted)
    assert of_the_service(booted).outcome == "compliant"


def test_a_first_apply_by_hand_needs_no_run_of_the_service(lab4: Path) -> None:
    answered(shown(NAME, **NEVER))(lab4)
    apply(lab4)
    assert of_the_service(lab4).outcome == "compliant"


def test_systemd_is_asked_for_whatever_ours_waits_for() -> None:
    lines = [line for line in render(("/usr/bin/tunectl",)).splitlines() if line.startswith("After=")]
    assert {unit for line in lines for unit in line.partition("=")[2].split()} < set(UNITS)


DECLARED = [
    pytest.param(written(DROP_IN, "[Service]\nUser=nobody\n"), f"/{DROP_IN}:2", id="another user"),
    pytest.param(written(DROP_IN, "[Service]\nNice=5\n"), f"/{DROP_IN}:2", id="nobody weighs it"),
    pytest.param(written(DROP_IN, "[Unit]\nConditionACPower=true\n"), f"/{DROP_IN}:2", id="a condition"),
    pytest.param(written(DROP_IN, "[Service]\nExecStart=/bin/true\n"), f"/{DROP_IN}:2", id="a second command"),
    pytest.param(
        written("usr/lib/systemd/system/tunectl-.service.d/x.conf", "[Service]\nPrivateDevices=yes\n"),
        "/usr/lib/systemd/system/tunectl-.service.d/x.conf:2",
        id="for every service of ours",
    ),
    pytest.param(linked(f"{UNIT}.requires/gone.target", "../gone.target"), "requires/gone.target", id="a link"),
]


@pytest.mark.parametrize(("harm", "place"), DECLARED)
def test_what_no_boot_has_tried_is_not_known_and_goes_by_its_fix(
    booted: Path, harm: Callable[[Path], object], place: str
) -> None:
    harm(booted)
    finding = of_the_service(booted)
    assert (finding.outcome, place in finding.reason) == ("unreadable", True)
    typed(booted, str(finding.fix))
    assert of_the_service(booted).outcome == "compliant"


def test_after_a_boot_that_it_spoilt_it_is_named_with_its_place_and_goes_by_its_fix(booted: Path) -> None:
    """Also where the run says that it did all it can: it could not do what it can without the drop-in."""
    write(booted, DROP_IN, "[Service]\nProtectKernelTunables=yes\n")
    answered(shown(NAME, ActiveState="failed", Result="exit-code", ExecMainStatus="3"))(booted)
    finding = of_the_service(booted)
    assert (finding.outcome, finding.observed, f"/{DROP_IN}:2" in finding.reason) == ("drifted", "failed", True)
    assert str(finding.fix).endswith(AGAIN)
    typed(booted, str(finding.fix))
    assert of_the_service(booted).outcome == "compliant"


CHANGING = [
    pytest.param(
        written(DROP_IN, "[Service]\nNice=5\nExecStart=\nExecStart=/bin/true\n"), f"/{DROP_IN}:4", id="another command"
    ),
    pytest.param(written(DROP_IN, "[Service]\nExecStart=\n"), f"/{DROP_IN}:2", id="no command"),
    pytest.param(
        written(DROP_IN, "[Service]\nExecStart=\nExecStart=/usr/bin/tunectl --host /a apply --yes --runtime\n"),
        f"/{DROP_IN}:3",
        id="another host file",
    ),
    pytest.param(written(DROP_IN, "[Service]\nUnsetEnvironment=\n"), f"/{DROP_IN}:2", id="an environment let in"),
    pytest.param(
        written("run/systemd/transient/tunectl-apply.service", "[Service]\nExecStart=/bin/true\n"),
        "/run/systemd/transient/tunectl-apply.service",
        id="another file",
    ),
]


@pytest.mark.parametrize(("harm", "place"), CHANGING)
def test_a_unit_that_would_do_something_else_is_named_before_the_boot_and_its_fix_mends_it(
    booted: Path, harm: Callable[[Path], object], place: str
) -> None:
    answered(shown(NAME))(booted)
    harm(booted)
    finding = of_the_service(booted)
    assert (finding.outcome, finding.observed, place in finding.reason) == ("drifted", "overridden", True)
    typed(booted, str(finding.fix))
    left = of_the_service(booted)  # a line that is nobody's to weigh may stay
    assert left.outcome != "drifted"
    typed(booted, str(left.fix) or "sudo true")
    assert of_the_service(booted).outcome == "compliant"


MASKS = [
    pytest.param(linked(UNIT, "/dev/null"), "masked", id="masked"),
    pytest.param(linked("etc/systemd/system.control/tunectl-apply.service", "/dev/null"), "masked", id="control"),
    pytest.param(linked(LINK, "/dev/null"), "disabled", id="its link is a mask"),
]


@pytest.mark.parametrize(("harm", "observed"), MASKS)
def test_a_service_that_is_masked_or_not_enabled_is_named_and_its_fix_mends_it(
    booted: Path, harm: Callable[[Path], object], observed: str
) -> None:
    harm(booted)
    finding = of_the_service(booted)
    assert (finding.outcome, finding.observed) == ("drifted", observed)
    typed(booted, str(finding.fix))
    assert of_the_service(booted).outcome == "compliant"


@pytest.mark.parametrize(
    "harm",
    [
        pytest.param(written(DROP_IN, "# nothing yet\n[Service]\n"), id="an empty one"),
        pytest.param(written(DROP_IN, "[X-Site]\nUser=nobody\n[Unit]\nX-Owner=me\n"), id="for a site's tools"),
        pytest.param(written(DROP_IN, "[Unit]\nBefore=irqbalance.service\n"), id="what the unit says itself"),
        pytest.param(
            written("usr/lib/systemd/system/service.d/10-abort.conf", "[Service]\nTimeoutStopFailureMode=abort\n"),
            id="a distribution's, for every service",
        ),
        pytest.param(
            written("etc/systemd/system/service.d/10-site.conf", "[Service]\nCPUAccounting=yes\n"),
            id="a site's, for every service",
        ),
        pytest.param(
            written("usr/lib/systemd/system/tunectl-apply.service", "[Service]\nExecStart=/bin/true\n"),
            id="a file that is not read",
        ),
        pytest.param(linked("run/systemd/system/tunectl-apply.service", "/dev/null"), id="a mask that is not read"),
        pytest.param(linked(f"{UNIT}.wants/gone.service", "../gone.service"), id="what it wants"),
    ],
)
def test_what_takes_nothing_from_the_service_is_no_matter(booted: Path, harm: Callable[[Path], object]) -> None:
    harm(booted)
    assert of_the_service(booted).outcome == "compliant"


def test_what_holds_for_other_services_leaves_a_decision(booted: Path) -> None:
    site = "etc/systemd/system/service.d/10-site.conf"
    write(booted, site, "[Service]\nCPUAccounting=yes\n[Unit]\nConditionKernelCommandLine=tuning\n")
    answered(shown(NAME, ActiveState="inactive", ConditionResult="no"))(booted)
    finding = of_the_service(booted)
    assert (finding.outcome, finding.observed) == ("drifted", "conditional")
    (task,) = finding.fix.tasks
    assert f"/{site}:4" in task.text


def test_what_the_boot_began_with_is_tried_by_it(tmp_path: Path) -> None:
    write(tmp_path, DROP_IN, "[Service]\nNice=5\n")
    root = Sysroot(str(tmp_path))
    root.live = True  # a recording keeps no times
    since = int(os.lstat(tmp_path / DROP_IN).st_ctime)
    for booted_at, files, of_unit, tried in (
        (since + 60, [DROP_IN], state(), True),
        (since - 60, [DROP_IN], state(), False),
        (since + 60, [DROP_IN, f"{UNIT}.d/gone.conf"], state(), False),
        (since + 60, [DROP_IN], state(**NEVER), False),
        (since + 60, [DROP_IN], state(Result="exit-code"), False),
    ):
        write(tmp_path, "proc/stat", f"cpu 1 2\nbtime {booted_at}\n")
        assert was_tried(root, of_unit, files) is tried


def test_the_unit_that_is_started_for_each_card_keeps_nothing_of_its_runs(booted: Path) -> None:
    write(booted, f"{REAPPLY}.d/override.conf", "[Service]\nExecStart=\nExecStart=/bin/true\n")
    finding = judged(booted, "systemd.apply_on_hotplug")["systemd.apply_on_hotplug"]
    assert (finding.outcome, finding.observed) == ("drifted", "overridden")
    write(booted, f"{REAPPLY}.d/override.conf", "[Service]\nUser=nobody\n")
    finding = judged(booted, "systemd.apply_on_hotplug")["systemd.apply_on_hotplug"]
    assert finding.outcome == "unreadable"
    typed(booted, str(finding.fix))
    assert judged(booted, "systemd.apply_on_hotplug")["systemd.apply_on_hotplug"].outcome == "compliant"


@pytest.mark.parametrize(
    ("active", "result", "status", "tampered", "failed"),
    [
        ("failed", "exit-code", "1", False, True),
        ("failed", "timeout", "3", False, True),
        ("failed", "signal", "9", False, True),
        ("failed", "exit-code", "3", False, False),  # it did all it can; what is drifted has findings of its own
        ("failed", "exit-code", "3", True, True),
        ("active", "success", "0", False, False),
        ("inactive", "success", "1", False, True),  # as `systemctl reset-failed` leaves it
        ("inactive", "success", "4", False, False),
    ],
)
def test_a_service_that_failed_did_not_do_all_it_can(
    active: str, result: str, status: str, tampered: bool, failed: bool
) -> None:
    asked = state(ActiveState=active, Result=result, ExecMainStatus=status)
    assert is_failed(asked, tampered=tampered) is failed
