"""What GRUB will do at the next boot: which entry it takes, what that entry is made from, what stands on its line."""

from ..sabotage import ALL, ARGUMENTS, Kind, Round, Sabotage, each, put, with_grub, word

_CFG, _CUSTOM, _DEFAULTS = "/boot/grub/grub.cfg", "/boot/grub/custom.cfg", "/etc/default/grub"
_DROP_IN = "/etc/default/grub.d/99-tunectl.cfg"
_VENDOR = "/etc/default/grub.d/zzz-vendor.cfg"
_SCRIPT = "/etc/grub.d/42_vendor"
_UPDATE = "update-grub 2>/dev/null"
_RECOVERY = (  # the path of the recovery entry that update-grub made of the running kernel
    "$(sed -n \"s/.*menuentry_id_option '\\(gnulinux-advanced-[^']*\\)'.*/\\1/p\" /boot/grub/grub.cfg)"
    ">$(sed -n \"s/.*menuentry_id_option '\\(gnulinux-[^']*-recovery-[^']*\\)'.*/\\1/p\" /boot/grub/grub.cfg | head -1)"
)


def _menu(path: str, *more: str) -> str:
    """A file of GRUB's with an entry of its own for the running kernel, and what else is said there."""
    entry = (
        "menuentry 'vendor kernel' --id vendor {",
        "  search --no-floppy --fs-uuid --set=root UUID",
        "  linux /boot/vmlinuz-KERNEL root=UUID=UUID ro console=ttyS0,115200",
        "  initrd /boot/initrd.img-KERNEL",
        "}",
    )
    known = "s/KERNEL/'$(uname -r)'/; s/root UUID/root '$(findmnt -no UUID /)'/; s/=UUID /='$(findmnt -no UUID /)' /"
    return f"{put(path, *entry, *more)}; sed -i '{known}' {path}"


def _script(*lines: str) -> str:
    """A script of /etc/grub.d that prints these lines, and update-grub."""
    return f"{put(_SCRIPT, '#!/bin/sh', 'exec tail -n +3 $0', *lines)}; chmod +x {_SCRIPT}; {_UPDATE}"


def _default(text: str) -> str:
    """GRUB_DEFAULT in the operator's file, and update-grub."""
    return f"sed -i 's/^GRUB_DEFAULT=.*/GRUB_DEFAULT={text}/' {_DEFAULTS}; {_UPDATE}"


_ENTRY = Round(
    (
        Sabotage(
            Kind.BOOT_CHOICE,
            "saved entry is the recovery entry",
            f'{_default("saved")}; grub-set-default "{_RECOVERY}"',
            ARGUMENTS,
            who="an operator who tried an entry with grub-set-default, and left it",
            innocent=f"grub-editenv - unset next_entry; {_default('saved')}; grub-set-default 0",
            says=("saved_entry",),
        ),
        Sabotage(
            Kind.BOOT_CHOICE,
            "GRUB_DEFAULT names the recovery entry",
            _default('"1>1"'),
            ARGUMENTS,
            who="a colleague who counted the entries of the submenu from one",
            innocent=_default('"1>0"'),
            says=("recovery",),
            decides=_default("0"),
        ),
        Sabotage(
            Kind.BOOT_CHOICE,
            "custom.cfg with a default of its own",
            _menu(_CUSTOM, "set default=vendor"),
            ARGUMENTS,
            who="a vendor's installer that brings its own kernel line",
            innocent=_menu(_CUSTOM, "set timeout=1"),
            says=("custom.cfg",),
        ),
        Sabotage(
            Kind.BOOT_CHOICE,
            "custom.cfg with a default inside an if",
            _menu(_CUSTOM, "if [ -s /boot/grub/grubenv ]; then", "  set default=vendor", "fi"),
            ARGUMENTS,
            who="the same installer, a version later",
            innocent=_menu(_CUSTOM, "if [ -s /boot/grub/grubenv ]; then", "  set timeout=1", "fi"),
            says=("custom.cfg",),
        ),
        Sabotage(
            Kind.BOOT_CHOICE,
            "custom.cfg that sources another file",
            f"{_menu('/boot/grub/vendor.cfg', 'set default=vendor')}; {put(_CUSTOM, 'source /boot/grub/vendor.cfg')}",
            ARGUMENTS,
            who="a tool that keeps its entries in a file of its own",
            innocent=f"{put('/boot/grub/vendor.cfg', 'set timeout=1')}; {put(_CUSTOM, 'source /boot/grub/vendor.cfg')}",
            says=("vendor.cfg",),
        ),
        Sabotage(
            Kind.BOOT_CHOICE,
            "custom.cfg that goes on with another menu",
            f"{_menu('/boot/grub/vendor.cfg', 'set default=vendor')};"
            f" {put(_CUSTOM, 'configfile /boot/grub/vendor.cfg')}",
            ARGUMENTS,
            who="somebody who tries another menu on this host",
            innocent=f"{_menu('/boot/grub/vendor.cfg')}; "
            + put(_CUSTOM, "menuentry 'the other menu' {", "  configfile /boot/grub/vendor.cfg", "}"),
            says=("vendor.cfg",),
        ),
        Sabotage(
            Kind.BOOT_CHOICE,
            "script of grub.d that sets the default",
            _script("set default=vendor", "menuentry 'vendor' --id vendor {", "  linux /boot/vmlinuz", "}"),
            ARGUMENTS,
            who="a package that adds a memory test and wants it once",
            innocent=_script("menuentry 'vendor' --id vendor {", "  linux /boot/vmlinuz", "}"),
            says=(_SCRIPT,),
        ),
    ),
    long=True,
    alone=True,
)

_SOURCE = Round(
    (
        Sabotage(
            Kind.BOOT_SOURCE,
            "later grub.d file without update-grub",
            put(_VENDOR, 'GRUB_CMDLINE_LINUX_DEFAULT="quiet splash"'),
            ARGUMENTS,
            who="a vendor's package; the next kernel's upgrade runs update-grub",
            innocent=put(_VENDOR, "GRUB_TIMEOUT=2", 'GRUB_CMDLINE_LINUX_DEFAULT="$GRUB_CMDLINE_LINUX_DEFAULT splash"'),
            says=("zzz-vendor.cfg",),
            decides=f"rm {_VENDOR}",
        ),
        Sabotage(
            Kind.BOOT_SOURCE,
            "our drop-in moved away without update-grub",
            f"mv {_DROP_IN} /root/",
            ARGUMENTS,
            who="a colleague who tidies up /etc/default",
            innocent=f"cp {_DROP_IN} {_DROP_IN}.bak",
        ),
        Sabotage(
            Kind.BOOT_SOURCE,
            "our drop-in made empty without update-grub",
            f": > {_DROP_IN}",
            ARGUMENTS,
            who="a disk that was full while a configuration was copied back",
            innocent=f"touch {_DROP_IN}",
        ),
        Sabotage(
            Kind.BOOT_SOURCE,
            "an earlier isolcpus= in the operator's own line, without update-grub",
            f"sed -i 's/^GRUB_CMDLINE_LINUX=\"/&isolcpus=3 /' {_DEFAULTS}",
            ("boot.isolcpus",),
            who="a colleague who tries another list",
            innocent=f"sed -i 's/^GRUB_CMDLINE_LINUX=\"/&net.ifnames=1 /' {_DEFAULTS}",
            says=("/etc/default/grub",),
        ),
        Sabotage(
            Kind.BOOT_MENU,
            "grub.cfg edited by hand",
            f"chmod u+w {_CFG}; sed -i 's/ irqaffinity=[^ ]*//' {_CFG}",
            ("boot.irqaffinity",),
            who="an operator in a hurry",
            innocent=f"chmod u+w {_CFG}; sed -i '1i # isolcpus= is set elsewhere' {_CFG}",
        ),
    ),
    long=True,
    alone=True,
)

_WORDS = Round(
    (
        Sabotage(
            Kind.BOOT_SOURCE,
            "highres=off for the next boot",
            word("highres=off"),
            ("kernel.highres",),
            who="somebody who compares timers: without them nohz_full= does nothing",
            innocent=word("highres=on"),
            says=("highres=off",),
        ),
        Sabotage(
            Kind.BOOT_SOURCE,
            "nohz=off for the next boot",
            word("nohz=off"),
            ("kernel.nohz",),
            who="an old guide for low latency",
            innocent=word("nohz=on"),
            says=("nohz=off",),
        ),
        Sabotage(
            Kind.CPU,
            "fewer CPUs for the next boot",
            word("nr_cpus=3"),
            ("cpu.online[3]",),
            who="a colleague who compared licences by the CPU",
            innocent=word("nr_cpus=8"),
            says=("nr_cpus=3", f"{_DEFAULTS}:", "CPU 3"),
        ),
        Sabotage(
            Kind.BOOT_SOURCE,
            "cpufreq.off=1 for the next boot",
            word("cpufreq.off=1"),
            each("cpufreq.governor", ALL) + each("cpufreq.max_khz", ALL),
            who="somebody who wanted the firmware to set the clock",
            innocent=word("cpufreq.off=0"),
            says=("cpufreq.off=1", f"{_DEFAULTS}:"),
        ),
        Sabotage(
            Kind.BOOT_SOURCE,
            "notsc for the next boot",
            word("notsc"),
            ("boot.tsc",),
            who="somebody whose log said once that the TSC was unstable",
            innocent=word("tsc=nowatchdog"),
            says=("notsc", f"{_DEFAULTS}:", "not the clock then"),
        ),
        Sabotage(
            Kind.BOOT_SOURCE,
            "another clock for the next boot",
            word("clocksource=acpi_pm"),
            ("boot.tsc",),
            who="a guide for virtual machines",
            innocent=word("clocksource=tsc"),
            says=("clocksource=acpi_pm", f"{_DEFAULTS}:"),
        ),
        Sabotage(
            Kind.UNIT,
            "systemd.mask= for the next boot",
            word("systemd.mask=tunectl-apply.service"),
            ("systemd.apply_at_boot",),
            who="an operator whose host did not come up, and who suspected our service",
            innocent=word("systemd.mask=apt-daily.timer"),
            says=("systemd.mask",),
        ),
    ),
    long=True,
    alone=True,
)

IN_CI = (  # played in a round of CI, with rows of other kinds
    with_grub(
        Sabotage(
            Kind.BOOT_CHOICE,
            "recovery entry for the next boot alone",
            f'grub-reboot "{_RECOVERY}"',
            ARGUMENTS,
            who="an operator who meant to look at a full disk, and then did not reboot",
            innocent="grub-reboot 0",
            says=("next_entry",),
        )
    ),
)

ROUNDS = {"entry": _ENTRY, "source": _SOURCE, "words": _WORDS}
