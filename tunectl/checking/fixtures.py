"""What a check may ask for by naming it as an argument: the host, its CPUs, and what it did for a while.

A pytest plugin module: the runner puts the Subject where these fixtures find it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from tunectl.checking.measure import Spinning
from tunectl.checking.outcomes import Settled, compliant, unknown, unsupported
from tunectl.checking.subject import Subject, Watched
from tunectl.checking.traders import Trader, whose
from tunectl.checking.window import Run, Window
from tunectl.command import as_data
from tunectl.cpulist import CpuSet, format_cpulist
from tunectl.host.cards import Card
from tunectl.host.cpusets import CpuFacts
from tunectl.host.refusals import ON_HOST
from tunectl.host.sysroot import Sysroot
from tunectl.model import Scope, Trading
from tunectl.tuners.conflicts import FoundTuner

SUBJECT = pytest.StashKey[Subject]()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One instance of a check for each isolated CPU, physical core, interface, tuner or declared thread."""
    subject = metafunc.config.stash[SUBJECT]
    if "isolated_cpu" in metafunc.fixturenames:
        cpus = sorted(subject.scope.isolated)
        _instances(metafunc, "isolated_cpu", cpus, [str(cpu) for cpu in cpus])
    if "isolated_core" in metafunc.fixturenames:
        _instances(metafunc, "isolated_core", subject.cores, [format_cpulist(core) for core in subject.cores])
    if "interface" in metafunc.fixturenames:
        _instances(metafunc, "interface", subject.interfaces, subject.interfaces)
    if "card" in metafunc.fixturenames:
        _instances(metafunc, "card", subject.cards, [card.name for card in subject.cards])
    if "trading_thread" in metafunc.fixturenames:
        _instances(metafunc, "trading_thread", subject.trading, [trading.name for trading in subject.trading])
    if "tuner" in metafunc.fixturenames:
        found = subject.tuners
        known = found if isinstance(found, list) else []
        # A tuner that cannot be asked about leaves one instance behind, whose fixture says so.
        _instances(metafunc, "tuner", known, [one.name for one in known])


def _instances(metafunc: pytest.Metafunc, name: str, values: Sequence[object], ids: Sequence[str]) -> None:
    """An instance a value; where there is none, one that says so in its fixture, for a check must not vanish."""
    metafunc.parametrize(name, values or [None], ids=ids or [""], indirect=True)


@pytest.fixture(scope="session")
def subject(pytestconfig: pytest.Config) -> Subject:
    """All that is known of the host under check."""
    return pytestconfig.stash[SUBJECT]


@pytest.fixture(scope="session")
def host(subject: Subject) -> Sysroot:
    """The host's files, to be read."""
    return subject.root


@pytest.fixture(scope="session")
def scope(subject: Subject) -> Scope:
    """Which CPUs are isolated, which are left to housekeeping."""
    return subject.scope


@pytest.fixture(scope="session")
def settings(subject: Subject) -> Mapping[str, Any]:
    """The values this host should have, by knob; empty where nobody said."""
    return subject.settings


@pytest.fixture(scope="session")
def cpu_facts(subject: Subject) -> CpuFacts:
    """What the kernel says of its CPUs: online, siblings, isolated, nohz_full."""
    return subject.facts


@pytest.fixture
def isolated_cpu(request: pytest.FixtureRequest, scope: Scope) -> int:
    """Each isolated CPU in turn."""
    cpu: int | None = request.param
    if cpu is None:
        unsupported("no CPU is isolated")
    if cpu not in scope.online:
        unsupported(f"CPU {cpu} is offline")
    return cpu


@pytest.fixture
def isolated_core(request: pytest.FixtureRequest) -> CpuSet:
    """The CPUs of each physical core that has an isolated one, in turn."""
    core: CpuSet | None = request.param
    return core if core is not None else unsupported("no CPU is isolated")


@pytest.fixture
def interface(request: pytest.FixtureRequest, host: Sysroot) -> str:
    """Each interface that the host file names, in turn."""
    name: str | None = request.param
    if name is None:
        unsupported("the host file names no interface in [network]")
    return name if name in host.listdir("sys/class/net") else unsupported(f"this host has no interface {name}")


@pytest.fixture
def card(request: pytest.FixtureRequest, host: Sysroot) -> Card:
    """Each network card that the host file names, graphics card and accelerator in turn."""
    found: Card | None = request.param
    if found is None:
        unsupported("the host file names no interface in [network], and there is no graphics card or accelerator")
    if found.kind == "network card" and found.name not in host.listdir("sys/class/net"):
        unsupported(f"this host has no interface {as_data(found.name)}")
    return found if found.way else unsupported(f"{as_data(found.name)} is no PCI card")


@pytest.fixture(scope="session")
def tuners(subject: Subject) -> list[FoundTuner]:
    """Every other program on this host that tunes it."""
    found = subject.tuners
    return found if isinstance(found, list) else unknown(f"who else tunes this host cannot be read: {found}")


@pytest.fixture
def tuner(request: pytest.FixtureRequest, tuners: list[FoundTuner], host: Sysroot) -> FoundTuner:
    """Each other program on this host that tunes it, in turn. A recording lacks scripts, which may hold secrets."""
    found: FoundTuner | None = request.param
    if found is not None:
        return found
    return compliant("nothing else on this host tunes it" if host.live else "nothing that is recorded tunes this host")


@pytest.fixture
def trading_thread(request: pytest.FixtureRequest, subject: Subject) -> Trader:
    """Each of the operator's own threads in turn, as declared and as found."""
    declared: Trading | None = request.param
    if declared is None:
        unsupported("the host file declares no [[threads]]")
    trader = Trader(declared, subject.trading_threads[declared.name])
    if not trader.threads and subject.hidden:
        unknown(f"{whose(declared)} is not seen to run: {subject.hidden}", ON_HOST)
    return trader


@pytest.fixture(scope="session")
def traders(subject: Subject) -> list[Trader]:
    """All of them."""
    return [Trader(trading, subject.trading_threads[trading.name]) for trading in subject.trading]


# These three are set up for each check, though measured once: so they come after `isolated_cpu` where that is asked
# for first, and nothing is measured for a check that has its answer already.


@pytest.fixture
def window(subject: Subject) -> Window:
    """The host's counters before and after some seconds in which nothing was done to it."""
    return _measured(subject.window)


@pytest.fixture
def spinner_window(subject: Subject, isolated_cpu: int) -> Window:
    """The same, while a thread spins on this isolated CPU: the one that runs there already, else tunectl-probe's."""
    return _measured(subject.spinning_on(isolated_cpu)).window


@pytest.fixture
def spinning(subject: Subject, isolated_cpu: int) -> Spinning:
    """That window, with the timer interrupts that the CPU took under its spinner, and who that was."""
    return _measured(subject.spinning_on(isolated_cpu))


def _measured(watched: Watched | Settled) -> Watched:
    if isinstance(watched, Settled):
        raise Settled(watched.outcome, watched.reason, watched.fix)
    return watched


@pytest.fixture
def threads(window: Window) -> list[Run]:
    """Every thread but our own, and what it did in the window; the busiest first."""
    return window.runs
