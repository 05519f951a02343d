"""The lab as pytest fixtures. A test that asks for `lab` or for `grub_parts` is marked `lab` by that alone."""

import os
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from tests.release import releases
from tests.sections import AGAIN

from . import foreign, fresh, product
from .grub import disk
from .grub.disk import GrubDisk
from .lab import Lab
from .platforms import Platform, chosen
from .shell import PROGRAMS, EmulatorError, LabError, missing_programs
from .sweep import session_name, states_name, sweep


@pytest.fixture(scope="session")
def lab(request: pytest.FixtureRequest) -> Iterator[Lab]:
    """A host that has just booted; shared by this worker's tests, so each leaves it as it found it.

    A test that is parametrised with a platform has a host of that kind, with saved states of its own.
    """
    asked: Platform | None = getattr(request, "param", None)
    platform = asked or chosen()
    _require_tools(platform)
    sweep()
    states = states_name(f"tour-{platform.name}" if asked else platform.name)
    host = Lab(session_name(os.environ.get("PYTEST_XDIST_WORKER", "main")), states, platform)
    try:
        host.up()
        yield host
    finally:
        host.down()


@pytest.fixture
def fresh_lab(lab: Lab) -> Lab:
    """The host as it was right after its boot, whatever the test before did to it: about three seconds."""
    lab.up()
    return lab


@pytest.fixture(scope="session")
def wheels(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The wheel of this tree and what it needs."""
    return product.build_wheels(tmp_path_factory.mktemp("wheels"), lab.platform)


@pytest.fixture(scope="session")
def package(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Path | None:
    """The platform's package of a release: of the folder $TUNECTL_LAB_RELEASE, or made now. None: it has none."""
    ready = os.environ.get("TUNECTL_LAB_RELEASE")
    place = Path(ready) if ready else tmp_path_factory.mktemp("release")
    if not ready:
        releases.make(product.ROOT, str(place))
    return next(place.glob(f"tunectl_*{lab.platform.package}"), None)


@pytest.fixture(scope="session")
def _installed(lab: Lab, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The saved moment after the installation."""
    with lab.saving("installed") as missing:
        if missing:
            tree = product.unpack_wheels(
                tmp_path_factory.mktemp("unpacked"), request.getfixturevalue("wheels"), lab.platform
            )
            lab.up()
            product.install(lab, tree)
            lab.save("installed")
    return "installed"


@pytest.fixture(scope="session")
def pristine(lab: Lab, _installed: str) -> dict[str, str]:
    """The fingerprint of all that apply may write, before it did; the host is left in that moment."""
    lab.restore(_installed)
    return lab.fingerprint(*product.WRITTEN)


@pytest.fixture(scope="session")
def _tuned(lab: Lab, _installed: str) -> str:
    """The saved moment after apply and the reboot it asks for."""
    with lab.saving("tuned") as missing:
        if missing:
            lab.restore(_installed)
            product.tunectl(lab, "apply --yes -q")
            lab.reboot()
            lab.save("tuned")
    return "tuned"


@pytest.fixture
def installed(lab: Lab, _installed: str) -> Lab:
    """A host with the product and a host file, and nothing applied."""
    lab.restore(_installed)
    return lab


@pytest.fixture
def tuned(lab: Lab, _tuned: str) -> Lab:
    """A host that was tuned and rebooted: what the test makes of it, no other test sees."""
    _back(lab, _tuned)
    lab.only_looked_at = ""
    return lab


@pytest.fixture
def in_force(lab: Lab, _tuned: str) -> Lab:
    """The same for a test that only looks: the host of the test before, where that only looked as well."""
    _back(lab, _tuned)
    lab.only_looked_at = _tuned
    return lab


def _back(lab: Lab, moment: str) -> None:
    """To a moment after apply, unless the host has only been looked at since."""
    if lab.only_looked_at != moment:
        product.back_to_tuned(lab, moment)


@pytest.fixture(scope="session")
def grub_parts(tmp_path_factory: pytest.TempPathFactory) -> disk.Parts:
    """GRUB, and a kernel that says its command line."""
    _require(disk.missing())
    return disk.Parts(tmp_path_factory.mktemp("grub"))


@pytest.fixture
def grub(grub_parts: disk.Parts, tmp_path: Path) -> GrubDisk:
    """A disk for a configuration of GRUB, to boot in a second or two."""
    return GrubDisk(grub_parts, tmp_path)


def _require_tools(platform: Platform) -> None:
    """What the host needs that `lab` is."""
    unbuilt = os.geteuid() != 0 and not fresh.built(platform)
    _require(
        _missing(platform),
        "the image is not built yet, and only root can build it (python -m tests.lab build)" if unbuilt else "",
    )


def _missing(platform: Platform) -> list[str]:
    """Programs, and files of a firmware, that a platform needs and this machine does not have."""
    board = platform.machine.board
    programs = missing_programs((board.program, *PROGRAMS, *foreign.emulator(platform.machine.architecture)))
    return [*programs, *(str(path) for path in board.uefi if platform.uefi and not path.exists())]


def _require(missing: list[str], reason: str = "") -> None:
    """Skip where the lab is not asked for or cannot run; but fail where it has to (TUNECTL_LAB=required)."""
    if not os.environ.get("TUNECTL_LAB"):
        pytest.skip("booting real kernels takes long: set TUNECTL_LAB=1 (docs/lab.md)")
    if missing:
        reason = f"not installed: {', '.join(missing)} (tests/lab/packages.txt)"
    if reason and os.environ.get("TUNECTL_LAB") == "required":
        pytest.fail(f"the lab is required here, but cannot run: {reason}")
    if reason:
        pytest.skip(f"the lab cannot run: {reason}")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark by fixture, and before -m selects: nobody forgets the marker.

    Where QEMU itself failed, and provably, the test is played once more; nothing else is.
    """
    for item in items:
        if {"lab", "grub_parts"} & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.lab)
            item.add_marker(pytest.mark.flaky(reruns=1, only_rerun=[f"^{EmulatorError.__name__}"]))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A failed test shows what the host last wrote to its console. A host that QEMU failed is replaced."""
    report = yield
    host = getattr(item, "funcargs", {}).get("lab")
    if report.failed and isinstance(host, Lab):
        try:
            report.sections.append(("lab console", host.vm.console_tail()))
        except (LabError, OSError) as error:
            report.sections.append(("lab console", f"cannot be read: {error}"))
        if call.excinfo and call.excinfo.errisinstance(EmulatorError):
            report.user_properties.append((AGAIN, f"{item.nodeid}: {call.excinfo.value}".splitlines()[0]))
            host.up()
    return report
