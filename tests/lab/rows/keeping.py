"""What keeps the settings in force at each boot, and what will write them after us."""

from ..sabotage import CPU, THP, Kind, Round, Sabotage, ask_irqbalance, put

_UNIT = "tunectl-apply.service"
_DROP_IN = f"/etc/systemd/system/{_UNIT}.d/override.conf"
_SERVICE_DROP_IN = "/etc/systemd/system/service.d/10-site.conf"
_KEPT = ("systemd.apply_at_boot",)
_HOST = "/etc/tunectl/host.toml"
_NOTHING = ("[Service]", "Type=oneshot", "ExecStart=/bin/true")
_RELOAD = "systemctl daemon-reload"


def _override(section: str, *lines: str, path: str = _DROP_IN) -> str:
    """A drop-in, as `systemctl edit` makes it."""
    return f"{put(path, f'[{section}]', *lines)}; {_RELOAD}"


def _unit(name: str, *service: str, install: bool = True, after: str = _UNIT) -> str:
    """A service of somebody else's, enabled."""
    lines = [
        "[Unit]",
        f"After={after}",
        "[Service]",
        "Type=oneshot",
        *service,
        "[Install]",
        "WantedBy=multi-user.target",
    ]
    enabled = f"systemctl -q {'enable' if install else 'disable'} {name}"
    return f"{put(f'/etc/systemd/system/{name}', *lines)}; {_RELOAD}; {enabled}"


_KEEPER = Round(
    (
        Sabotage(
            Kind.UNIT,
            "drop-in with a condition that never holds",
            _override("Unit", "ConditionPathExists=/etc/trading-day"),
            _KEPT,
            who="a colleague who wants tuning on some days only",
            innocent=_override("Unit", "ConditionPathExists=/etc/tunectl/host.toml"),
            says=("override.conf",),
        ),
        Sabotage(
            Kind.UNIT,
            "drop-in that takes the rights away",
            _override("Service", "ProtectKernelTunables=yes"),
            _KEPT,
            who="a hardening script that goes through all services",
            innocent=_override("Service", "PrivateTmp=yes"),
            says=("override.conf",),
        ),
        Sabotage(
            Kind.UNIT,
            "drop-in that takes a path away",
            _override("Service", "InaccessiblePaths=/srv /sys"),
            _KEPT,
            who="a hardening script that hides from each service what it need not see",
            innocent=_override("Service", "InaccessiblePaths=/srv", "ReadOnlyPaths=/mnt"),
            says=("override.conf", "InaccessiblePaths="),
        ),
        Sabotage(
            Kind.UNIT,
            "drop-in that takes back what it may write",
            _override("Service", "ReadWritePaths="),
            _KEPT,
            who="a colleague who hardens units with a list of their own, and clears ours first",
            innocent=_override("Service", "ReadWritePaths=/srv"),
            says=("override.conf", "ReadWritePaths="),
        ),
        Sabotage(
            Kind.UNIT,
            "drop-in that runs it as nobody",
            _override("Service", "User=nobody"),
            _KEPT,
            who="the same script",
            innocent=_override("Service", "User=root"),
            says=("override.conf",),
        ),
        Sabotage(
            Kind.UNIT,
            "condition for every service",
            _override("Unit", "ConditionKernelCommandLine=tuning", path=_SERVICE_DROP_IN),
            (*_KEPT, "systemd.apply_on_hotplug"),
            who="a site's policy for all units, in service.d",
            innocent=_override("Service", "CPUAccounting=yes", path=_SERVICE_DROP_IN),
            says=("10-site.conf",),
            decides=f"rm {_SERVICE_DROP_IN}; {_RELOAD}",
        ),
        Sabotage(
            Kind.UNIT,
            "unit masked",
            f"systemctl -q disable {_UNIT}; ln -sf /dev/null /etc/systemd/system/{_UNIT}; {_RELOAD}",
            _KEPT,
            who="an operator who wants to be sure",
            innocent="systemctl -q mask apt-daily.service",
        ),
        Sabotage(
            Kind.UNIT,
            "another unit of that name",
            f"{put('/etc/systemd/system.control/' + _UNIT, *_NOTHING)}; {_RELOAD}",
            _KEPT,
            who="a site's tool that keeps its units in a directory that is read first",
            innocent=f"{put('/etc/systemd/system.control/other.service', *_NOTHING)}; {_RELOAD}",
            says=("system.control",),
        ),
        Sabotage(
            Kind.UNIT,
            "it failed in this boot",
            f"cp {_HOST} /root/; echo nonsense >> {_HOST}; systemctl restart {_UNIT}; cp /root/host.toml {_HOST}",
            _KEPT,
            who="a colleague who wrote the host file while the host booted",
            innocent=f"systemctl restart {_UNIT}",
            says=("failed",),
        ),
        Sabotage(
            Kind.UNIT,
            "default target without it",
            "systemctl -q set-default rescue.target",
            _KEPT,
            who="an operator who repaired the host, and left it so",
            innocent="systemctl -q set-default graphical.target",
            says=("rescue.target",),
        ),
        Sabotage(
            Kind.UNIT,
            "its program is gone",
            # the one on PATH is what the operator still has
            "cd /opt/tunectl/bin; cp --remove-destination tunectl /usr/local/bin/; mv tunectl /root/",
            (*_KEPT, "systemd.apply_on_hotplug"),
            who="an upgrade of Python under the virtual environment, or a moved folder",
            innocent="touch /opt/tunectl/bin/tunectl",
        ),
        Sabotage(
            Kind.UNIT,
            "udev's rule masked",
            "ln -sf /dev/null /etc/udev/rules.d/95-tunectl.rules; udevadm control --reload",
            ("systemd.apply_on_hotplug",),
            who="an operator who looked for a restart loop",
            innocent="touch /etc/udev/rules.d/95-tunectl.rules",
            says=("/dev/null",),
        ),
        Sabotage(
            Kind.UNIT,
            "the unit that the rule starts does nothing",
            _override(
                "Service",
                "ExecStart=",
                "ExecStart=/bin/true",
                path="/etc/systemd/system/tunectl-reapply@.service.d/override.conf",
            ),
            ("systemd.apply_on_hotplug",),
            who="the same operator, an hour later",
            innocent=_override(
                "Service", "Nice=5", path="/etc/systemd/system/tunectl-reapply@.service.d/override.conf"
            ),
            says=("override.conf",),
        ),
    ),
    long=True,
    alone=True,
)

_RC = "/etc/rc.local"
_NIGHTLY = ("[Timer]", "OnCalendar=03:00", "[Install]", "WantedBy=timers.target")
_WRITERS = Round(
    (
        Sabotage(
            Kind.WRITER,
            "a cron job at each boot",
            put("/etc/cron.d/power", f"@reboot root echo powersave > {CPU}/cpu2/cpufreq/scaling_governor"),
            ("check.other_tuners[cron]",),
            command="check",
            who="a colleague who wants to save power",
            # The lab has no cron: that one is installed is looked at, and what it would run.
            innocent=f"{put('/usr/sbin/cron', '#!/bin/sh', 'exit 0')}; chmod +x /usr/sbin/cron; "
            + put(
                "/etc/cron.d/power",
                f"# @reboot root echo powersave > {CPU}/cpu2/cpufreq/scaling_governor",
                f"@reboot root cat {CPU}/cpu2/cpufreq/scaling_governor > /run/governor",
                f"@reboot root echo performance > {CPU}/cpu2/cpufreq/scaling_governor",
            ),
            says=("/etc/cron.d/power:1",),
        ),
        Sabotage(
            Kind.WRITER,
            "an enabled service ordered after ours",
            _unit("ksm-tuned.service", "ExecStart=/bin/sh -c 'echo 1 > /sys/kernel/mm/ksm/run'"),
            ("check.other_tuners[services]",),
            command="check",
            who="a package for virtual machines",
            innocent=_unit("ksm-tuned.service", "ExecStart=/bin/sh -c 'echo 0 > /sys/kernel/mm/ksm/run'"),
            says=("ksm-tuned.service",),
        ),
        Sabotage(
            Kind.WRITER,
            "a timer's service",
            _unit("reclaim.service", f"ExecStart=/bin/sh -c 'echo always > {THP}/defrag'", install=False)
            + f"; {put('/etc/systemd/system/reclaim.timer', *_NIGHTLY)}; systemctl -q enable reclaim.timer",
            ("check.other_tuners[services]",),
            command="check",
            who="a database's package, each night",
            innocent=_unit("reclaim.service", f"ExecStart=/bin/sh -c 'echo always > {THP}/defrag'", install=False),
            says=("reclaim.service",),
        ),
        Sabotage(
            Kind.WRITER,
            "a drop-in of another service",
            _override(
                "Service",
                "ExecStartPost=/sbin/sysctl -w vm.stat_interval=1",
                path="/etc/systemd/system/ssh.service.d/stat.conf",
            ),
            ("check.other_tuners[services]",),
            command="check",
            who="somebody who wanted fresh statistics at each login",
            innocent=_override(
                "Service", "ExecStartPost=/bin/true", path="/etc/systemd/system/ssh.service.d/stat.conf"
            ),
            says=("stat.conf",),
        ),
        Sabotage(
            Kind.WRITER,
            "a line of tmpfiles.d",
            put("/etc/tmpfiles.d/thp.conf", f"w {THP}/enabled - - - - always"),
            ("check.other_tuners[tmpfiles.d]",),
            command="check",
            who="a database's package",
            innocent=put("/etc/tmpfiles.d/thp.conf", f"w {THP}/enabled - - - - never"),
            says=("thp.conf:1",),
        ),
        Sabotage(
            Kind.WRITER,
            "a rule of udev",
            put(
                "/etc/udev/rules.d/99-latency.rules",
                'SUBSYSTEM=="cpu", ACTION=="add", ATTR{power/pm_qos_resume_latency_us}="0"',
            ),
            ("check.other_tuners[udev rules]",),
            command="check",
            who="a laptop's profile that came with the image",
            innocent=put("/etc/udev/rules.d/99-latency.rules", 'SUBSYSTEM=="cpu", ACTION=="add", ENV{SEEN}="1"'),
            says=("99-latency.rules",),
        ),
        Sabotage(
            Kind.WRITER,
            "a line of sysctl.d",
            put("/etc/sysctl.d/99-vendor.conf", "kernel.timer_migration = 0"),
            ("check.other_tuners[sysctl.d]",),
            command="check",
            who="a vendor's tuning guide",
            innocent=put("/etc/sysctl.d/99-vendor.conf", "kernel.timer_migration = 1", "kernel.panic = 10"),
            says=("99-vendor.conf:1",),
        ),
    ),
    long=True,
)

_BALANCE = "/etc/systemd/system/irqbalance.service.d/override.conf"
_BALANCE_ENV = "/etc/default/irqbalance"
_RESTART = "systemctl restart irqbalance; sleep 2"
# What it moves meanwhile, and what then arrives.
_MOVED = ("irq.affinity[*]", "irqbalance.banned_cpus", "check.device_interrupts[*]")
# Without a list of its own irqbalance spares the CPUs that this boot isolated: a list of others is what breaks it.
_BALANCER = Round(
    (
        Sabotage(
            Kind.CONFIG,
            "irqbalance's unit drops the ban",
            _override("Service", "EnvironmentFile=", "Environment=IRQBALANCE_BANNED_CPULIST=1", path=_BALANCE)
            + f"; {_RESTART}",
            ("check.other_tuners[irqbalance]",),
            command="check",
            follows=_MOVED,
            who="a colleague who copied a drop-in from another host",
            innocent=_override("Service", "Nice=5", path=_BALANCE) + f"; {_RESTART}",
            says=("override.conf",),
        ),
        Sabotage(
            Kind.CONFIG,
            "irqbalance runs with an older configuration",
            f"cp {_BALANCE_ENV} /root/; sed -i 's/^\\(IRQBALANCE_BANNED_CPULIST=\\).*/\\11/' {_BALANCE_ENV};"
            f" {_RESTART}; cp /root/irqbalance {_BALANCE_ENV}",
            ("check.other_tuners[irqbalance]",),
            command="check",
            follows=_MOVED,
            who="a package's upgrade that brought its own file and was corrected later",
            innocent=f"touch {_BALANCE_ENV}; {_RESTART}",
        ),
        Sabotage(
            Kind.CONFIG,
            "irqbalance's unit starts another command",
            _override(
                "Service",
                "ExecStart=",
                "ExecStart=/usr/bin/env -u IRQBALANCE_BANNED_CPULIST IRQBALANCE_BANNED_CPUS=0"
                " /usr/sbin/irqbalance --foreground",
                path=_BALANCE,
            )
            + f"; {_RESTART}",
            ("check.other_tuners[irqbalance]",),
            command="check",
            follows=_MOVED,
            who="a vendor's guide for throughput",
            innocent=_override(
                "Service", "ExecStart=", "ExecStart=/usr/sbin/irqbalance --foreground --debug", path=_BALANCE
            )
            + f"; {_RESTART}",
            says=("override.conf",),
        ),
        Sabotage(
            Kind.CONFIG,
            "irqbalance-ui bans other CPUs",
            f"{ask_irqbalance('settings cpus 1')} >/dev/null; sleep 15",  # it looks at its list every ten seconds
            ("check.other_tuners[irqbalance]",),
            command="check",
            follows=_MOVED,
            who="an operator who tried irqbalance-ui: what is chosen there counts instead of the configuration",
            innocent=f"{ask_irqbalance('settings cpus 2-3')} >/dev/null; sleep 15",
            says=("says so",),
        ),
    ),
    long=True,
    alone=True,
)

IN_CI = (  # played in a round of CI, with rows of other kinds
    Sabotage(
        Kind.UNIT,
        "drop-in with another ExecStart",
        _override("Service", "ExecStart=", "ExecStart=/bin/true"),
        _KEPT,
        who="a colleague who wanted a boot without tuning, for once",
        innocent=_override("Service", "TimeoutStartSec=300", "Environment=LANG=C"),
        says=("override.conf",),
    ),
    Sabotage(
        Kind.WRITER,
        "rc.local",
        f"{put(_RC, '#!/bin/sh', 'sysctl -w vm.swappiness=60', 'exit 0')}; chmod +x {_RC}; {_RELOAD}",
        ("check.other_tuners[rc.local]",),
        command="check",
        who="a guide of ten years ago",
        innocent=f"{put(_RC, '#!/bin/sh', 'exit 0', 'sysctl -w vm.swappiness=60')}; chmod +x {_RC}; {_RELOAD}",
        says=("/etc/rc.local:2",),
    ),
)

ROUNDS = {"keeper": _KEEPER, "writers": _WRITERS, "balancer": _BALANCER}
