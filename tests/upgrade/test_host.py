"""A host that an earlier version applied: verified, applied again, restored byte for byte; its units are ours."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.ran import Ran
from tests.trees import differences, picture
from tests.upgrade.unpacked import FIXTURES, unpacked

Run = Callable[..., Ran]
UNITS = "etc/systemd/system"
SERVICES = ("monitor", "apply", "repair")
FINE = ("compliant", "unsupported")


@pytest.fixture
def applied(tmp_path: Path) -> Path:
    """The host with all that the earlier version wrote."""
    return unpacked("applied", tmp_path / "host")


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[str, int, bytes | str]]:
    """The host as it was before the earlier version touched it."""
    return picture(unpacked("before", tmp_path_factory.mktemp("before") / "host"))


def states(tunectl: Run, action: str, service: str, root: Path) -> set[str]:
    done = tunectl("service", action, service, "--root", root, "--format", "json")
    assert (done.code, done.err) == (0, "")
    return {unit["state"] for unit in done.json["units"]}


def test_what_stands_is_compliant_but_for_the_units_which_apply_renews(tunectl: Run, applied: Path) -> None:
    done = tunectl("verify", "--root", applied, "--format", "json")
    bad = {one["knob"]: one["outcome"] for one in done.json["findings"] if one["outcome"] not in FINE}
    # An earlier recording does not say whether its kernel has a fair server.
    unknown = {"kernel.sched_rt_runtime_us": "unreadable", "kernel.fair_server_runtime_ns": "unreadable"}
    # Its units let an environment name another host file.
    units = {"systemd.apply_at_boot": "drifted", "systemd.apply_on_hotplug": "drifted"}
    assert (done.code, done.json["verdict"], bad) == (3, "drifted", unknown | units)
    assert {one["observed"] for one in done.json["findings"] if one["knob"] in units} == {"outdated"}
    planned = tunectl("plan", "--root", applied, "--format", "json").json["changes"]
    assert {one["knob"] for one in planned} == set(units)
    assert tunectl("apply", "--yes", "--root", applied).code == 0
    assert tunectl("verify", "--root", applied).code == 0


@pytest.mark.parametrize("again", [False, True])
def test_restore_brings_the_host_back(
    tunectl: Run, applied: Path, before: dict[str, tuple[str, int, bytes | str]], again: bool
) -> None:
    if again:  # the host file asks for more, and the first before-image is still the earlier version's
        host_file = applied / "etc/tunectl/host.toml"
        asked = host_file.read_text()
        host_file.write_text(f'{asked}[knobs]\n"mm.swappiness" = 2\n"kernel.stat_interval" = 20\n')
        assert tunectl("apply", "--yes", "--root", applied).code == 0
        host_file.write_text(asked)
    done = tunectl("restore", "--root", applied, "--format", "json")
    assert (done.code, done.err) == (0, "")
    assert {one["result"] for one in done.json["results"]} <= {"restored", "already"}
    for service in ("monitor", "repair"):
        assert states(tunectl, "remove", service, applied) == {"removed"}
    assert not differences(before, applied)


@pytest.mark.parametrize("service", SERVICES)
def test_a_unit_of_an_earlier_version_is_ours(tunectl: Run, applied: Path, service: str) -> None:
    # A unit that starts a program starts another one now; the path unit starts none, and may be as it was.
    assert {"outdated"} <= states(tunectl, "show", service, applied) <= {"outdated", "installed"}
    assert {"written"} <= states(tunectl, "install", service, applied) <= {"written", "unchanged"}
    assert states(tunectl, "show", service, applied) == {"installed"}
    assert states(tunectl, "remove", service, applied) == {"removed"}
    assert states(tunectl, "show", service, applied) == {"absent"}


@pytest.mark.parametrize("service", SERVICES)
def test_a_unit_of_an_earlier_version_can_be_removed(tunectl: Run, applied: Path, service: str) -> None:
    assert states(tunectl, "remove", service, applied) == {"removed"}
    assert states(tunectl, "show", service, applied) == {"absent"}


def test_an_older_text_is_outdated_and_apply_renews_it(tunectl: Run, applied: Path) -> None:
    unit = applied / UNITS / "tunectl-apply.service"
    unit.write_text((FIXTURES / "tunectl-apply.service").read_text())
    assert states(tunectl, "show", "apply", applied) == {"outdated"}
    found = tunectl("verify", "--root", applied, "--format", "json").json["findings"]
    (one,) = [one for one in found if one["knob"] == "systemd.apply_at_boot"]
    assert (one["outcome"], one["observed"]) == ("drifted", "outdated")
    assert tunectl("apply", "--yes", "--root", applied).code == 0
    assert states(tunectl, "show", "apply", applied) == {"installed"}


UNCONFINED = FIXTURES / "unconfined"


@pytest.mark.parametrize("name", ["tunectl-apply.service", "tunectl-reapply@.service", "tunectl-latency.service"])
def test_a_unit_that_was_not_confined_is_ours_and_apply_renews_it(tunectl: Run, applied: Path, name: str) -> None:
    host_file = applied / "etc/tunectl/host.toml"
    host_file.write_text(f'{host_file.read_text()}[knobs]\n"cpuidle.dma_latency_us" = 1\n')
    assert tunectl("apply", "--yes", "--root", applied).code == 0
    unit = applied / UNITS / name
    unit.write_text((UNCONFINED / name).read_text())
    planned = tunectl("plan", "--root", applied, "--format", "json").json["changes"]
    (change,) = planned
    assert change["knob"] in ("systemd.apply_at_boot", "systemd.apply_on_hotplug", "cpuidle.dma_latency_us")
    assert tunectl("apply", "--yes", "--root", applied).code == 0
    assert "ProtectKernelLogs=yes" in unit.read_text()
    assert tunectl("restore", "--root", applied).code == 0
    assert not unit.exists()


def test_a_repair_unit_that_was_not_confined_is_outdated(tunectl: Run, applied: Path) -> None:
    tunectl("service", "install", "repair", "--root", applied)
    (applied / UNITS / "tunectl-repair.service").write_text((UNCONFINED / "tunectl-repair.service").read_text())
    assert states(tunectl, "show", "repair", applied) == {"installed", "outdated"}
    assert states(tunectl, "install", "repair", applied) == {"unchanged", "written"}


def test_a_session_of_an_earlier_version_is_reported(tunectl: Run, tmp_path: Path) -> None:
    store = unpacked("fleet", tmp_path / "store")
    done = tunectl("fleet", "report", store / "morning", "--format", "json")
    assert (done.code, done.json["verdict"]) == (3, "no-go")
    answers = {one["name"]: (one["answer"], one["verdict"]) for one in done.json["hosts"]}
    assert {name: answer for name, (answer, _) in answers.items()} == {
        "lab4": "document",
        "gone": "unreachable",
        "silent": "silent",
    }
    history = tunectl("fleet", "history", "lab4", "--store", store, "--format", "json")
    assert [one["verdict"] for one in history.json["sessions"]] == [answers["lab4"][1]]
