"""What the host had and has no more, and what it got that takes memory or time away."""

from ..sabotage import ARGUMENTS, Kind, Round, Sabotage, declare, no_word, word

_STATE = "/var/lib/tunectl"
_FAIR = "/sys/kernel/debug/sched/fair_server"
_SWAP = "dd if=/dev/zero of=/swapfile bs=1M count=8 status=none; chmod 600 /swapfile; mkswap -q /swapfile"
_MEMORY = Round(
    (
        Sabotage(
            Kind.MEMORY,
            "swap is on, and at each boot",
            "swapon /swapfile; sed -i 's/^#*\\(.swapfile\\)/\\1/' /etc/fstab",
            ("mm.swap",),
            who="the same installer, with a line of fstab",
            innocent=f"{_SWAP}; echo '#/swapfile none swap sw 0 0' >> /etc/fstab",
            says=("/swapfile",),
        ),
        Sabotage(
            Kind.VALUE,
            "the fair server is on again",
            f"echo 50000000 > {_FAIR}/cpu2/runtime",
            ("kernel.fair_server_runtime_ns[2]",),
            who="a guide against hanging kernel workers",
            innocent=f"echo 50000000 > {_FAIR}/cpu1/runtime",
            follows=("kernel.sched_rt_runtime_us",),
            needs=f"test -d {_FAIR}",
            lacks="this kernel has no fair server (6.12 and later)",
        ),
    ),
    long=True,
    alone=True,
)

_GONE = Round(
    (
        Sabotage(
            Kind.LOSS,
            "the driver of the clock is gone",
            "modprobe -r acpi_cpufreq",
            ("cpufreq.governor",),  # no CPU has it any more: it is named once
            who="a colleague who compares drivers",
            innocent="modprobe dummy; modprobe -r dummy",
            says=("in force since",),
            follows=("cpufreq.*",),
            decides="modprobe acpi-cpufreq; sleep 1; tunectl apply --yes -q",
        ),
        Sabotage(
            Kind.LOSS,
            "the journal is gone",
            f"rm -r {_STATE}",
            ("journal",),
            who="a script that empties /var, or an image made without it",
            innocent=f"touch {_STATE}/notes.txt",
            says=(_STATE,),
        ),
    ),
    long=True,
    alone=True,
)

_REBOOTED = Round(
    (
        Sabotage(
            Kind.LOSS,
            "cpufreq.off=1 in this boot",
            word("cpufreq.off=1"),
            ("cpufreq.governor",),  # no CPU has it any more: it is named once
            who="an old guide for a steady clock",
            innocent=word("cpufreq.default_governor=performance"),
            says=("cpufreq.off",),
            follows=("cpufreq.*",),
            decides=no_word("cpufreq.off=1"),
        ),
        Sabotage(
            Kind.LOSS,
            "highres=off in this boot",
            word("highres=off"),
            ("kernel.highres",),
            who="somebody who compares timers",
            innocent=word("highres=on"),
            says=("highres=off",),
            follows=("check.tick_off*",),
        ),
    ),
    long=True,
    reboots=True,
)

IN_CI = (  # played in a round of CI, with rows of other kinds
    Sabotage(
        Kind.MEMORY,
        "swap is on",
        "swapon /swapfile",
        ("mm.swap",),
        who="an installer that found little memory",
        innocent=_SWAP,
        says=("/swapfile",),
    ),
    Sabotage(
        Kind.LOSS,
        "a waiver of what does not exist",
        declare("waivers", 'knob = "irq.affinity"', 'target = "999"', 'reason = "an old card"', "until = 2099-01-01"),
        (),
        who="an operator who exchanged a card",
        innocent="true",
        notes=("irq.affinity[999]", "covers nothing"),
    ),
)

_ENTRY = "/boot/grub/custom.cfg"
_OTHER_MENU = (  # the first entry of grub.cfg once more, under another name
    f"sed -n '/^menuentry/,/^}}/p' /boot/grub/grub.cfg | sed '/^}}/q; s/.gnulinux-simple[^ ]*/other/' > {_ENTRY}"
)
_ONCE = Round(
    (
        Sabotage(
            Kind.BOOT_CHOICE,
            "this boot took another entry, once",
            f"{_OTHER_MENU}; sed -i '/^.linux/s/ isolcpus=.*//' {_ENTRY}; grub-reboot other",
            ARGUMENTS,
            who="a colleague who tried the host without isolation, for one boot",
            innocent=f"{_OTHER_MENU}; grub-reboot other",
            follows=("irq.*", "workqueue.*", "kernel.*"),
        ),
    ),
    long=True,
    reboots=True,
)

ROUNDS = {"memory": _MEMORY, "gone": _GONE, "rebooted": _REBOOTED, "once": _ONCE}
