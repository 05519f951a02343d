"""What a boot makes of our service and our arguments: targets, environments, scripts of grub.d, udev's rules."""

from ..sabotage import ARGUMENTS, Kind, Round, Sabotage, put, word

_RELOAD = "systemctl daemon-reload"
_SYSTEM = "/etc/systemd/system"
_TRADING = f"{_SYSTEM}/trading.target"
_KEPT = ("systemd.apply_at_boot",)
_DEFAULTS, _LINUX = "/etc/default/grub", "/etc/grub.d/10_linux"
_ENVIRONMENT = "/etc/systemd/system.conf.d/10-env.conf"
_QUIET = "/etc/udev/rules.d/99-quiet.rules"
_UDEV = "udevadm control --reload"
_NO_UNITS = 'SUBSYSTEM=="{}", ENV{{SYSTEMD_WANTS}}=""'
_DRAFT = "cp /etc/tunectl/host.toml /etc/tunectl/draft.toml; sed -i s/low-/balanced-/ /etc/tunectl/draft.toml"
_REDIRECTED = put(_ENVIRONMENT, "[Manager]", "DefaultEnvironment=TUNECTL_HOST=/etc/tunectl/draft.toml")
_LET_IN = f"{_SYSTEM}/tunectl-apply.service.d/draft.conf"


def _trading(*lines: str) -> str:
    """A target of the operator's own, and the boot goes to it."""
    unit = put(_TRADING, "[Unit]", "Description=Trading", "After=basic.target", "AllowIsolate=yes", *lines)
    return f"{unit}; {_RELOAD}; systemctl -q set-default trading.target"


_LEFT_OUT = Round(
    (
        Sabotage(
            Kind.UNIT,
            "another default target",
            _trading("Requires=basic.target", "Wants=ssh.service irqbalance.service"),
            _KEPT,
            who="an operator who wants a lean boot",
            innocent=_trading("Requires=multi-user.target"),
            says=("trading.target", "default.target"),
        ),
        Sabotage(
            Kind.UNIT,
            "another target on the next line",
            word("systemd.unit=rescue.target"),
            _KEPT,
            who="somebody who repaired a file system",
            innocent=word("systemd.unit=multi-user.target"),
            says=("systemd.unit=rescue.target", f"{_DEFAULTS}:"),
        ),
        Sabotage(
            Kind.UNIT,
            "a bare word on the next line",
            word("single"),
            _KEPT,
            who="somebody who repaired a file system, in another decade",
            innocent=word("not-single"),
            says=("single", f"{_DEFAULTS}:"),
        ),
        Sabotage(
            Kind.UNIT,
            "an empty /var on the next line",
            word("systemd.volatile=state"),
            (*_KEPT, "systemd.apply_on_hotplug"),
            who="a colleague who keeps a host without state",
            innocent=word("systemd.volatile=overlay"),
            says=("systemd.volatile=state", f"{_DEFAULTS}:"),
        ),
        Sabotage(
            Kind.UNIT,
            "a default target that requires what is not there",
            _trading("Requires=multi-user.target engine-gone.service"),
            _KEPT,
            who="an operator who took the old engine's package off: nothing starts at the next boot",
            innocent=_trading("Requires=multi-user.target", "Wants=engine-gone.service"),
            says=("engine-gone.service", f"{_TRADING}:"),
            decides=_trading("Requires=multi-user.target"),
        ),
        Sabotage(
            Kind.UNIT,
            "another first program on the next line",
            word("init=/bin/bash"),
            _KEPT,
            who="somebody who had forgotten a password",
            innocent=word("init=/lib/systemd/systemd"),
            says=("init=/bin/bash",),
        ),
        Sabotage(
            Kind.UNIT,
            "an environment with another host file that is let in",
            f"{put(_LET_IN, '[Service]', 'UnsetEnvironment=')}; {_RELOAD}",
            _KEPT,
            who="a colleague who tries a draft of the host file, and forgets it",
            innocent=f"{_DRAFT}; {_REDIRECTED}; {_RELOAD}",
            says=("TUNECTL_HOST",),
            decides=f"rm {_LET_IN}; {_RELOAD}",
        ),
        Sabotage(
            Kind.UNIT,
            "a rule of udev's that takes the units of network cards away",
            f"{put(_QUIET, _NO_UNITS.format('net'))}; {_UDEV}",
            ("systemd.apply_on_hotplug",),
            who="a colleague whose units start twice",
            innocent=f"{put(_QUIET, _NO_UNITS.format('tty'))}; {_UDEV}",
            says=(f"{_QUIET}:1",),
        ),
        Sabotage(
            Kind.UNIT,
            "udev masked",
            "systemctl -q mask systemd-udevd.service",
            ("systemd.apply_on_hotplug",),
            who="an image that was built in a container, where udev has nothing to do",
            innocent="systemctl -q mask systemd-udev-settle.service",
            says=("systemd-udevd.service",),
        ),
        Sabotage(
            Kind.BOOT_SOURCE,
            "10_linux with arguments of its own",
            f"sed -i 's/\\${{GRUB_CMDLINE_LINUX_DEFAULT}}/quiet/' {_LINUX}",
            ARGUMENTS,
            who="a colleague who recovered from a bad line, and made sure",
            innocent=f"echo '# looked at by the operator' >> {_LINUX}; update-grub 2>/dev/null",
            says=(f"{_LINUX}:",),
        ),
        Sabotage(
            Kind.BOOT_SOURCE,
            "10_linux that assigns the settings anew",
            f"sed -i '2iGRUB_CMDLINE_LINUX_DEFAULT=quiet' {_LINUX}; update-grub 2>/dev/null",
            ARGUMENTS,
            who="the same colleague, elsewhere",
            innocent=f"sed -i '2iGRUB_TIMEOUT=2' {_LINUX}; update-grub 2>/dev/null",
            says=(f"{_LINUX}:",),
        ),
        Sabotage(
            Kind.VALUE,
            "the soft-lockup detector switched on again",
            "sysctl -q kernel.soft_watchdog=1 kernel.watchdog_cpumask=0-3",
            ("boot.nosoftlockup",),
            follows=("kernel.watchdog_cpumask",),
            who="a monitoring agent that wants every lockup in the log",
            innocent="sysctl -q kernel.soft_watchdog=1 kernel.watchdog_thresh=20",
            says=("soft_watchdog",),
        ),
    ),
    long=True,
    alone=True,
)

_TICKING = Round(
    (
        Sabotage(
            Kind.BOOT_SOURCE,
            "nohz=off in this boot",
            word("nohz=off"),
            ("kernel.nohz",),
            who="a colleague who looked for a clock that drifts",
            innocent=word("nohz=on"),
            says=("nohz=off", f"{_DEFAULTS}:"),
            follows=("check.tick_off*",),
        ),
    ),
    long=True,
    reboots=True,
)

ROUNDS = {"leftout": _LEFT_OUT, "ticking": _TICKING}
