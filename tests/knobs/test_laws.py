"""Four laws of every row of the knob table on recorded hosts: applied, restored, sabotaged, unreadable."""

import errno
import fnmatch
import os
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import write_host_file
from tests.hosts.builder import NAMES, HostFactory, named
from tests.knobs.conftest import ISOLATED
from tests.trees import Picture, differences, picture
from tests.tuned import apply, inspection_on, restore
from tunectl.host.sysroot import Sysroot
from tunectl.knobs import KNOBS
from tunectl.model import Finding, Outcome
from tunectl.verdict import verdict_of

SABOTAGES: dict[str, dict[str, Any]] = tomllib.loads((Path(__file__).parent / "sabotages.toml").read_text())
# An operator's to switch, tunectl only judges them: their sabotages are in test_switched_off.py.
JUDGED_ONLY = {"mm.swap", "kernel.highres", "kernel.nohz"}
STOCK = tuple(name for name in NAMES if name != "big")
ASKED = """\
profile = "low-latency"
isolated = "{}"
allow_split_siblings = true
[knobs]
"cpufreq.boost" = true
"cpufreq.policy_boost" = true
"cpufreq.min_perf_pct" = 100
"cpufreq.hwp_dynamic_boost" = false
"""


def test_every_row_has_a_sabotage() -> None:
    assert list(SABOTAGES) == [name for name in KNOBS if name not in JUDGED_ONLY]


@pytest.mark.parametrize("name", STOCK)
def test_after_apply_a_stock_host_waits_for_its_boot_alone_and_restore_is_to_the_byte(
    host_root: HostFactory, tmp_path: Path, name: str
) -> None:
    root = host_root.fresh(name, tmp_path)
    write_host_file(root, ASKED.format(max(named(name).online)))
    before = picture(root)
    findings = apply(root).plan.findings
    boots = {one.outcome for one in findings if one.knob.startswith("boot.")}
    others = {one.outcome for one in findings if not one.knob.startswith("boot.") and one.harmful}
    assert boots <= {Outcome.PENDING_REBOOT, Outcome.UNSUPPORTED}
    assert others <= {Outcome.COMPLIANT, Outcome.UNSUPPORTED}
    assert restore(root).complete
    assert differences(before, root) == {}


@pytest.mark.parametrize("name", ISOLATED)
def test_restore_takes_every_row_back_to_the_byte(
    host: Callable[[str], Path], untouched: dict[str, Picture], name: str
) -> None:
    root = host(name)
    assert restore(root).complete
    assert differences(untouched[name], root) == {}


def sabotage(root: Path, row: dict[str, Any]) -> None:
    """What somebody else does to a tuned host."""
    for path, text in row.get("put", {}).items():
        assert (root / path).exists()
        (root / path).write_text(f"{text}\n")
    for path, words in row.get("cut", {}).items():
        text = (root / path).read_text()
        for word, by in words.items():
            assert word in text
            text = text.replace(word, by)
        (root / path).write_text(text)
    for path in filter(None, [row.get("gone")]):
        (root / path).unlink()


def broken(root: Path) -> dict[str, Finding]:
    """What fails, by target: not the harmless managed interrupts of xeon2s."""
    failing = (Outcome.DRIFTED, Outcome.PENDING_REBOOT, Outcome.UNREADABLE)
    return {one.target: one for one in inspection_on(root).assess().findings if one.outcome in failing}


@pytest.mark.parametrize("name", SABOTAGES)
def test_one_wrong_value_gives_one_finding_that_names_it(host: Callable[[str], Path], name: str) -> None:
    row = SABOTAGES[name]
    root = host(row["host"])
    target = f"{name}[{row['at']}]" if "at" in row else name
    sabotage(root, row)
    findings = broken(root)
    assert set(findings) == {target, *row.get("with", ())}
    assert (findings[target].knob, findings[target].outcome) == (name, Outcome.DRIFTED)
    assert findings[target].reason


# Each hides others: CPUs that are off, a driver in another mode, a word that another row cuts, too.
ALONE = ("smt.control", "cpu.online", "cpufreq.intel_pstate", "boot.rcu_nocbs")
TOGETHER = [[name for name, row in SABOTAGES.items() if row["host"] == host and name not in ALONE] for host in ISOLATED]


@pytest.mark.parametrize("names", [*([name] for name in ALONE), *TOGETHER], ids=lambda names: names[0])
def test_apply_mends_what_is_wrong(host: Callable[[str], Path], names: list[str]) -> None:
    root = host(SABOTAGES[names[0]]["host"])
    for name in names:
        sabotage(root, SABOTAGES[name])
    assert {finding.knob for finding in broken(root).values()} >= set(names)
    assert verdict_of(apply(root).plan.findings) == "compliant"
    assert broken(root) == {}  # for whoever looks next


class Blind(Sysroot):
    """A host on which some files cannot be read, nor any setting of a NIC."""

    def __init__(self, root: Path, closed: Sequence[str]) -> None:
        super().__init__(str(root))
        self._closed = (*closed, "ethtool/*")

    def open(self, path: str) -> int:
        return self._failing(path, super().open(path))

    def open_below(self, directory: int, path: str) -> int:
        place = os.path.relpath(os.readlink(f"/proc/self/fd/{directory}"), self.root)
        return self._failing(f"{place}/{path}", super().open_below(directory, path))

    def _failing(self, path: str, fd: int) -> int:
        """EIO, as a device answers that fails; what is not there is not there."""
        if not any(fnmatch.fnmatchcase(path, pattern) for pattern in self._closed):
            return fd
        os.close(fd)
        raise OSError(errno.EIO, "Input/output error", path)


@pytest.mark.parametrize("name", ISOLATED)
def test_what_cannot_be_read_is_never_compliant(applied: dict[str, Path], name: str) -> None:
    compliant = []
    for setting in inspection_on(applied[name]).config.settings:
        blind = inspection_on(Blind(applied[name], KNOBS[setting.knob].driver.reads()))
        findings = blind.assess((setting,)).findings
        compliant += [one.target for one in findings if one.outcome is Outcome.COMPLIANT]
    assert compliant == []
