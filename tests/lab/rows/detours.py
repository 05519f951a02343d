"""Scripts that write our settings by a detour, swap that comes with the next boot, a driver that is kept away."""

from ..sabotage import THP, Kind, Round, Sabotage, declare, put

_SCRIPTS = "/usr/local/sbin"
_VENDOR = "/etc/vendor-sysctl.conf"
_ZRAM = "/etc/systemd/zram-generator.conf"
_GENERATOR = "/usr/lib/systemd/system-generators/zram-generator"
_BARRED = "/etc/modprobe.d/power.conf"


def _service(name: str, *script: str) -> str:
    """A service that runs a script of its own at the end of each boot."""
    path = f"{_SCRIPTS}/{name}"
    unit = ("[Service]", "Type=oneshot", f"ExecStart={path}", "[Install]", "WantedBy=multi-user.target")
    made = f"{put(path, '#!/bin/sh', *script)}; chmod +x {path}; {put(f'/etc/systemd/system/{name}.service', *unit)}"
    return f"{made}; systemctl daemon-reload; systemctl -q enable {name}.service"


def _writer(
    name: str, who: str, service: str, script: tuple[str, ...], innocent: tuple[str, ...], *says: str
) -> Sabotage:
    return Sabotage(
        Kind.WRITER,
        name,
        _service(service, *script),
        ("check.other_tuners[services]",),
        command="check",
        who=who,
        innocent=_service(service, *innocent),
        says=says,
    )


_LOADS = _service("vendor-defaults", f"sysctl -q -p {_VENDOR}")
_LATECOMERS = Round(
    (
        _writer(
            "a script that goes to the directory first",
            "a guide that shows it by hand",
            "by-hand",
            (f"cd {THP} || exit", "echo always > enabled"),
            (f"cd {THP} || exit", "echo never > enabled", "cd /tmp || exit", "echo always > enabled"),
            f"{_SCRIPTS}/by-hand:3",
        ),
        _writer(
            "a script with its values in variables",
            "a colleague who writes tidy scripts",
            "tidy",
            ("export MODE=always", f"FILE={THP}", 'echo "${MODE}" > "${FILE}/enabled"'),
            ("export MODE=never", f"FILE={THP}", 'echo "${MODE}" > "${FILE}/enabled"'),
            f"{_SCRIPTS}/tidy:4",
            "always",
        ),
        _writer(
            "a script that writes with dd",
            "a script that has to write through sudo",
            "by-sudo",
            ("echo 60 | dd of=/proc/sys/vm/swappiness status=none",),
            ("echo 1 | dd of=/proc/sys/vm/swappiness status=none",),
            f"{_SCRIPTS}/by-sudo:2",
        ),
        Sabotage(
            Kind.WRITER,
            "a script that loads sysctls from a file of its own",
            f"{put(_VENDOR, 'kernel.panic = 10', 'vm.swappiness = 60')}; {_LOADS}",
            ("check.other_tuners[services]",),
            command="check",
            who="a vendor's installer",
            innocent=f"{put(_VENDOR, 'kernel.panic = 10', 'vm.swappiness = 60', 'vm.swappiness = 1')}; {_LOADS}",
            says=(f"{_VENDOR}:2",),
        ),
        Sabotage(
            Kind.WRITER,
            "zram-generator is told to make swap",
            put(_ZRAM, "[zram0]", "zram-size = min(ram / 2, 4096)"),
            ("check.other_tuners[zram-generator]",),
            command="check",
            who="a distribution's default, or a guide for small machines",
            # the generator of the next boot; here its configuration alone is looked at
            innocent=f"{put(_GENERATOR, '#!/bin/sh', 'exit 0')}; chmod +x {_GENERATOR}; "
            + put(_ZRAM, "[zram0]", "zram-size = 0", "[zram1]", "mount-point = /var/scratch"),
            says=(f"{_ZRAM}:1",),
        ),
        Sabotage(
            Kind.LOSS,
            "a waiver of CPUs that this host has not",
            declare(
                "waivers", 'knob = "cpufreq.governor"', 'target = "27-28"', 'reason = "fixed"', "until = 2099-01-01"
            ),
            (),
            who="an operator who copied the host file of a larger machine",
            innocent=declare(
                "waivers", 'knob = "cpufreq.max_khz"', 'target = "3-28"', 'reason = "fixed"', "until = 2099-01-01"
            ),
            notes=("cpufreq.governor[27-28]", "covers nothing"),
        ),
    ),
    long=True,
)

_KEPT_AWAY = Round(
    (
        Sabotage(
            Kind.LOSS,
            "a driver that is blacklisted",
            put(_BARRED, "# less heat", "blacklist acpi_cpufreq"),
            ("cpufreq.governor",),
            who="a package for quiet fans",
            innocent=put(_BARRED, "# less heat", "blacklist floppy"),
            says=(f"{_BARRED}:2", "blacklist acpi_cpufreq"),
            follows=("cpufreq.*",),
        ),
    ),
    long=True,
    reboots=True,
)

ROUNDS = {"latecomers": _LATECOMERS, "barred": _KEPT_AWAY}
