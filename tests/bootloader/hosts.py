"""Recorded hosts of every boot loader, and the product on them."""

from dataclasses import replace
from pathlib import Path

from tests.conftest import write_host_file
from tests.hosts.builder import build, named
from tests.tuned import inspection_on
from tunectl.bootloader.families import FAMILIES
from tunectl.bootloader.family import Upcoming
from tunectl.cpulist import CpuSet
from tunectl.host.sysroot import Sysroot
from tunectl.hostfile.profile import SHIPPED
from tunectl.model import Finding

# loader of the builder -> (its distribution, the family tunectl finds)
LOADERS = {
    "suse-grub": ("suse", "suse-grub"),
    "bls": ("rhel", "bls"),
    "systemd-boot": ("debian", "systemd-boot"),
    "uki": ("debian", "systemd-boot"),
    "kernelstub": ("pop", "kernelstub"),
    "rpm-ostree": ("fedora", "rpm-ostree"),
    "raspberry-pi": ("debian", "raspberry-pi"),
}
WORDS = ("isolcpus=managed_irq,domain,2-3", "nohz_full=2-3", "rcu_nocbs=2-3", "irqaffinity=0-1", "skew_tick=1",
         "nosoftlockup", "tsc=reliable")  # fmt: skip
LINE = " ".join(WORDS)
NEWEST = "6.1.0-39-amd64"


def host(below: Path, loader: str, *, tuned_boot: CpuSet = frozenset()) -> Path:
    """A four-CPU host that boots by `loader`, with a host file that isolates CPUs 2-3."""
    tree = build(below / loader, replace(named("lab4", tuned_boot=tuned_boot), loader=loader, os=LOADERS[loader][0]))
    wish(tree)
    return tree


def wish(tree: Path, isolated: str = "2-3", knobs: str = "", head: str = "", *, whole: bool = False) -> None:
    """What the operator wants of it: the boot arguments of low-latency, or the `whole` of it."""
    profile = "low-latency" if whole else "boot.toml"
    text = f'profile = "{profile}"\nisolated = "{isolated}"\n{head}[knobs]\n{knobs}'
    rows = (Path(SHIPPED) / "low-latency.toml").read_text().split("\n\n")
    boot = [row for row in rows if row.startswith('[knobs."boot.')]
    assert len(boot) == len(WORDS)
    write_host_file(tree, text).with_name("boot.toml").write_text("\n\n".join(boot))


def boot_findings(tree: Path) -> dict[str, Finding]:
    """What verify says of each boot argument."""
    inspection = inspection_on(tree)
    every = (*inspection.config.settings, *inspection.leftovers())
    return {
        one.knob: one for one in inspection.assess(tuple(one for one in every if one.knob.startswith("boot."))).findings
    }


def upcoming(tree: Path, loader: str) -> Upcoming:
    """What tunectl reads as the next boot's lines."""
    return FAMILIES[LOADERS[loader][1]].upcoming(Sysroot(str(tree)))
