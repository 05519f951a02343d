"""Planning the drop-in: what it must hold, and what would win over it."""

from pathlib import Path

import pytest

from tests.bootloader.trees import grub_host, write
from tunectl.bootloader.cmdline import RULES, split_isolcpus
from tunectl.bootloader.family import BootPlan, Write
from tunectl.bootloader.grub import confirm, plan_dropin, render_dropin
from tunectl.bootloader.grubsettings import DROPIN, configured
from tunectl.bootloader.words import Desired
from tunectl.cpulist import parse_cpulist, parse_isolcpus

VALUES = {"isolcpus": "managed_irq,domain,2-3", "nohz_full": "2-3", "rcu_nocbs": "2-3", "irqaffinity": "0-1",
          "skew_tick": "1", "nosoftlockup": None, "tsc": "reliable"}  # fmt: skip
DESIRED: list[Desired] = [(key, value, RULES[key]) for key, value in VALUES.items()]
WORDS = [key if value is None else f"{key}={value}" for key, value in VALUES.items()]
ISOLCPUS: list[Desired] = DESIRED[:1]
OTHER = "etc/default/grub.d/50-site.cfg"


def same(key: str, one: str, other: str) -> bool:
    if key == "isolcpus":
        return parse_isolcpus(one)[:2] == parse_isolcpus(other)[:2]
    if key in ("nohz_full", "rcu_nocbs", "irqaffinity"):
        return parse_cpulist(one) == parse_cpulist(other)
    return one == other


def plan(tmp_path: Path, settings: str, desired: list[Desired] = DESIRED) -> BootPlan:
    return plan_dropin(grub_host(tmp_path, {OTHER: settings}), desired, same)


def holding(words: list[str]) -> BootPlan:
    """The plan that writes our file with these words, and has nothing to complain of."""
    return BootPlan((Write("file", DROPIN, render_dropin(words)),))


def append(text: str, variable: str = "GRUB_CMDLINE_LINUX_DEFAULT") -> str:
    return f'{variable}="${variable} {text}"\n'


def test_everything_is_missing(tmp_path: Path) -> None:
    assert plan(tmp_path, "") == holding(WORDS)


def test_a_plan_does_not_depend_on_what_ours_holds_now(tmp_path: Path) -> None:
    root = grub_host(tmp_path, {DROPIN: render_dropin(["isolcpus=6-7"])})
    assert plan_dropin(root, DESIRED, same) == holding(WORDS)


def test_nothing_is_missing(tmp_path: Path) -> None:
    settings = append("isolcpus=managed_irq,domain,2,3 nohz-full=2-3 rcu_nocbs=7 rcu_nocbs=3,2") + append(
        "irqaffinity=0,1 skew_tick=1 nosoftlockup tsc=reliable tsc=nowatchdog"
    )
    assert plan(tmp_path, settings) == BootPlan()


def test_a_file_of_ours_that_is_no_longer_needed_goes_away(tmp_path: Path) -> None:
    root = grub_host(tmp_path, {OTHER: append("nosoftlockup"), DROPIN: render_dropin(["nosoftlockup"])})
    assert plan_dropin(root, DESIRED[5:6], same) == BootPlan((Write("removal", DROPIN, ""),))


def test_only_what_is_missing_is_written(tmp_path: Path) -> None:
    settings = append("nohz_full=2-3 skew_tick=0 tsc=nowatchdog nosoftlockup", "GRUB_CMDLINE_LINUX")
    words = [word for word in WORDS if not word.startswith(("nohz_full", "nosoftlockup"))]
    assert plan(tmp_path, settings) == holding(words)


@pytest.mark.parametrize("variable", ["GRUB_CMDLINE_LINUX", "GRUB_CMDLINE_LINUX_DEFAULT"])
def test_an_earlier_list_wins(variable: str, tmp_path: Path) -> None:
    found = plan(tmp_path, "\n" + append("isolcpus=4-7 nohz_full=2", variable))
    assert found.writes == holding(WORDS).writes
    assert found.conflicts == (
        f"isolcpus=4-7 in /{OTHER}:2 wins: the kernel takes the first",
        f"nohz_full=2 in /{OTHER}:2 wins: the kernel takes the first",
    )


def test_an_earlier_isolcpus_with_the_same_list_is_no_conflict(tmp_path: Path) -> None:
    assert plan(tmp_path, append("isolcpus=2-3"), ISOLCPUS) == holding(WORDS[:1])


@pytest.mark.parametrize("line", ['GRUB_CMDLINE_LINUX_DEFAULT="splash"', "unset GRUB_CMDLINE_LINUX_DEFAULT"])
def test_a_later_file_overwrites_ours(line: str, tmp_path: Path) -> None:
    root = grub_host(tmp_path, {"etc/default/grub.d/99-zzz.cfg": f"\n{line}\n"})
    found = plan_dropin(root, ISOLCPUS, same)
    assert found.writes == holding(WORDS[:1]).writes
    assert found.conflicts == (
        f"/etc/default/grub.d/99-zzz.cfg:2 overwrites GRUB_CMDLINE_LINUX_DEFAULT, without {WORDS[0]}",
    )


def test_a_later_file_has_the_last_word(tmp_path: Path) -> None:
    root = grub_host(tmp_path, {"etc/default/grub.d/99-zzz.cfg": append("irqaffinity=0-7 isolcpus=7 tsc=unstable")})
    found = plan_dropin(root, DESIRED, same)
    assert found.conflicts == ("irqaffinity=0-7 in /etc/default/grub.d/99-zzz.cfg:1 wins: the kernel takes the last",)


@pytest.mark.parametrize(
    ("text", "conflict"),
    [
        ("-- single", "'--' in /{}:1 ends the kernel's own arguments: {} behind it goes to init"),
        ("a;b", "a ';' or a brace in /{}:1 ends GRUB's linux command before {}"),
    ],
)
def test_what_init_would_get_or_grub_cut_off(text: str, conflict: str, tmp_path: Path) -> None:
    assert plan(tmp_path, append(text), ISOLCPUS).conflicts == (conflict.format(OTHER, WORDS[0]),)


def test_tuneds_own_isolcpus_wins(tmp_path: Path) -> None:
    root = grub_host(
        tmp_path, {OTHER: append("\\$tuned_params"), "boot/grub/grub.cfg": 'set tuned_params="isolcpus=6-7"\n'}
    )
    assert plan_dropin(root, ISOLCPUS, same).conflicts == (
        f"isolcpus=6-7 in $tuned_params of /boot/grub/grub.cfg, from /{OTHER}:1 wins: the kernel takes the first",
    )


def test_problems(tmp_path: Path) -> None:
    assert plan(tmp_path, append("$(cat /x)")) == BootPlan(problem=f"needs a shell: /{OTHER}:1")
    long = plan(tmp_path, append("x" * 1900))
    assert long.writes == holding(WORDS).writes
    assert "the kernel keeps 2047" in long.problem


def test_confirm(tmp_path: Path) -> None:
    root = grub_host(tmp_path)
    planned = plan_dropin(root, DESIRED, same)
    assert confirm(configured(root), ISOLCPUS, same) is not None
    write(tmp_path, {one.path: one.content for one in planned.writes})
    assert confirm(configured(root), DESIRED, same) is None
    write(tmp_path, {"etc/default/grub.d/99-zzz.cfg": "GRUB_CMDLINE_LINUX_DEFAULT=\n"})
    assert confirm(configured(root), ISOLCPUS, same) == (
        f"/etc/default/grub.d/99-zzz.cfg:1 overwrites GRUB_CMDLINE_LINUX_DEFAULT, without {WORDS[0]}"
    )


def test_split_isolcpus_is_what_same_is_asked(tmp_path: Path) -> None:
    """Of two isolcpus= the bare lists are compared, which `same` takes for `domain` on both sides."""
    asked: list[tuple[str, str, str]] = []

    def spy(key: str, one: str, other: str) -> bool:
        asked.append((key, one, other))
        return same(key, one, other)

    plan_dropin(grub_host(tmp_path, {OTHER: append("isolcpus=2-3")}), ISOLCPUS, spy)
    assert ("isolcpus", "2-3", split_isolcpus("managed_irq,domain,2-3")[1]) in asked
