"""The tuners: who they are, how each says what it writes, when it writes, and what `apply` does about it.

A new one is a row here, and a reader where it has a configuration of its own.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from tunectl.host.jobs import (
    Job,
    read_card_hooks,
    read_cron_jobs,
    read_rc_local,
    read_service_jobs,
    read_sleep_hooks,
)
from tunectl.host.sysctld import Setting
from tunectl.host.sysroot import Sysroot
from tunectl.tuners import cards, directories, keyfiles, latewriters, udevwrites
from tunectl.tuners.keyfiles import read_zram
from tunectl.tuners.tuned import read_tuned

_COMM_LENGTH = 15  # the kernel keeps no more of a process's name
_AT_BOOT = "apply writes its own value; so does tunectl-apply.service after each boot, where apply_at_boot is enabled"
_COMES_BACK = "apply writes its own value and stops nobody's service: it stands until then, and verify names it"
_APPEARS = "when the device appears or changes"
_GOES_UP = "each time the card goes up"
_FREQUENCY = ("cpufreq.governor", "cpufreq.min_khz", "cpufreq.max_khz")


class Tuner(NamedTuple):
    """A program that tunes: its units, its processes, the knobs it writes, and how to read what it writes."""

    name: str
    overwrites: tuple[str, ...]  # patterns of knobs, where its configuration does not say more
    when: str
    answer: str
    settings: Callable[[Sysroot], tuple[Setting, ...] | None] | None = None  # gives None where it cannot be known
    once: bool = False  # it writes once, at boot, and ends: enabled is as good as running
    others: tuple[str, ...] = ()  # units besides the one of its name

    @property
    def units(self) -> tuple[str, ...]:
        """Its systemd units."""
        return (f"{self.name}.service", *self.others)

    @property
    def process_name(self) -> str:
        """What its processes are called in /proc/PID/comm."""
        return self.name[:_COMM_LENGTH]


class Files(NamedTuple):
    """Files that tune without a program of their own: the boot or udev reads them."""

    name: str
    settings: Callable[[Sysroot], tuple[Setting, ...]]
    when: str
    answer: str
    does: str = "sets"
    only_cards: bool = False  # it sets nothing but what network cards have


PROGRAMS = (
    # What TuneD writes depends on its profile; these are its cpu, sysctl, vm, scheduler, irq and bootloader plugins.
    Tuner(
        "tuned",
        (
            *("boot.*", "cpufreq.*", "cpuidle.*", "irq.*", "kernel.*", "mm.*"),
            *("net.busy_*", "uncore.*", "workqueue.cpumask"),
        ),
        "when it starts and when a profile is chosen; when it stops, the values of before come back",
        "apply writes its own value, and tunectl-apply.service runs after it at each boot; a profile that is chosen "
        "later writes over it. `tunectl propose --from-tuned` takes its set-up over, `tuned-adm off` ends it",
        read_tuned,
        others=("tuned-ppd.service",),
    ),
    Tuner(
        "irqbalance",
        ("irq.affinity", "net.queue_irqs"),
        "about every ten seconds",
        "apply writes its ban list and restarts it",
    ),
    Tuner(
        "power-profiles-daemon",
        ("cpufreq.governor", "cpufreq.energy_performance_preference", "cpufreq.energy_perf_bias", "cpufreq.boost"),
        "when it starts and when a power profile is chosen",
        _COMES_BACK,
    ),
    Tuner(
        "thermald",
        ("cpufreq.max_khz", "cpufreq.max_perf_pct", "cpufreq.boost"),
        "when a temperature nears its limit",
        _COMES_BACK,
    ),
    Tuner(
        "tlp",
        ("cpufreq.*", "kernel.nmi_watchdog", "pcie.aspm_policy", "pcie.runtime_power"),
        "at the end of the boot and when power is plugged in",
        _COMES_BACK,
        keyfiles.read_tlp,
        once=True,
    ),
    Tuner(
        "auto-cpufreq",
        ("cpufreq.*",),
        "every few seconds, by load",
        _COMES_BACK,
        keyfiles.read_auto_cpufreq,
    ),
    Tuner(
        "system76-power",
        ("cpufreq.*",),
        "when it starts and when a profile is chosen",
        _COMES_BACK,
        others=("com.system76.PowerDaemon.service",),
    ),
    Tuner(
        "cpupower",
        _FREQUENCY,
        "once, at boot",
        _AT_BOOT,
        keyfiles.read_cpupower,
        once=True,
        others=("cpupower-service.service",),
    ),
    Tuner(
        "cpufrequtils",
        _FREQUENCY,
        "once, at boot",
        _AT_BOOT,
        keyfiles.read_cpufrequtils,
        once=True,
    ),
    Tuner("ondemand", ("cpufreq.governor",), "once, at the end of the boot", _AT_BOOT, once=True),
    # ksm.service starts merging at boot; ksmtuned starts and stops it by the memory that is free.
    Tuner(
        "ksmtuned",
        ("mm.ksm",),
        "as memory fills and empties",
        _COMES_BACK,
        others=("ksm.service",),
    ),
)
_LATER = "apply writes its own value, and it stands until then"


def tuner_units() -> tuple[str, ...]:
    """The systemd units of every program of the table."""
    return tuple(unit for tuner in PROGRAMS for unit in tuner.units)


def _run_by(jobs: Callable[..., Iterable[Job]], *besides: frozenset[str]) -> Callable[[Sysroot], tuple[Setting, ...]]:
    """A reader of what programs name, from one of which programs a host runs; `besides`: units that are left out."""
    return lambda root: tuple(latewriters.settings_of(root, jobs(root, *besides)))


_OTHERS = frozenset(tuner_units())
FILES = (
    Files("sysctl.d", directories.read_sysctl_d, "at boot, and when a package calls sysctl --system", _AT_BOOT),
    Files("tmpfiles.d", directories.read_tmpfiles_d, "at boot", _AT_BOOT),
    Files("sysfs.conf", directories.read_sysfs_conf, "at boot", _AT_BOOT),
    Files("udev rules", udevwrites.read_udev_rules, _APPEARS, _COMES_BACK),
    Files(
        "GRUB",
        directories.read_grub_d,
        "when GRUB's menu is written",
        "apply's own file is read after every other, so it wins where the kernel takes the last of several; where "
        "it takes the first (isolcpus, nohz_full) the other setting has to go, and apply says so",
    ),
    Files(
        "zram-generator",
        read_zram,
        "at each boot",
        "apply switches no swap off: verify names it once it is on",
        "will write",
    ),
    Files("link files", cards.read_link_files, _APPEARS, _COMES_BACK, only_cards=True),
    Files("ifupdown", cards.read_ifupdown, _GOES_UP, _COMES_BACK),
    Files("NetworkManager", cards.read_keyfiles, _GOES_UP, _COMES_BACK, only_cards=True),
    Files("ifcfg", cards.read_ifcfg, _GOES_UP, _COMES_BACK),
    Files("netplan", cards.read_netplan, _APPEARS, _COMES_BACK, only_cards=True),
    Files("network hooks", _run_by(read_card_hooks), _GOES_UP, _LATER, "may write"),
    Files("sleep hooks", _run_by(read_sleep_hooks), "each time the host resumes", _LATER, "may write"),
    Files("cron", _run_by(read_cron_jobs), "when its time comes", _LATER, "may write"),
    Files("rc.local", _run_by(read_rc_local), "at the end of each boot", _LATER, "may write"),
    Files(
        "services",
        _run_by(read_service_jobs, _OTHERS),
        "when the boot or a timer starts it",
        _LATER,
        "may write",
    ),
)
