"""modprobe.d: the lines that keep a module from being loaded, as modprobe(8) itself reads them."""

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.trees import write
from tunectl.host.modprobe import parse_modprobe, read_barred, taking_out_lines
from tunectl.host.sysroot import Sysroot

TEXT = """\
# blacklist one
blacklist acpi-cpufreq
  blacklist   pcc_cpufreq   # why
options acpi_cpufreq x=1
install floppy /bin/true
install p4-clockmod /usr/bin/false
install snd /sbin/modprobe --ignore-install snd
install dccp \\
  /bin/false
blacklist
alias blacklist x
"""
BARRED = [("acpi_cpufreq", 2), ("pcc_cpufreq", 3), ("floppy", 5), ("p4_clockmod", 6), ("dccp", 8)]


def test_the_lines_that_keep_a_module_away() -> None:
    assert [(one.modules, one.line) for one in parse_modprobe(TEXT)] == BARRED
    assert [one.last for one in parse_modprobe(TEXT)][-1] == 9


@pytest.mark.skipif(not shutil.which("modprobe"), reason="modprobe is not installed")
def test_modprobe_reads_them_so(tmp_path: Path) -> None:
    write(tmp_path, "a.conf", TEXT)
    argv = ["modprobe", "--config", str(tmp_path), "--showconfig"]
    shown = subprocess.run(argv, capture_output=True, text=True, check=False).stdout.splitlines()
    words = [line.split() for line in shown]
    said = {one[1] for one in words if one[:1] == ["blacklist"]}
    said |= {one[1] for one in words if one[:1] == ["install"] and one[2].endswith(("/true", "/false"))}
    assert {name for name, _ in BARRED} == {name.replace("-", "_") for name in said}


MODALIAS = "cpu:type:x86,ven0000fam0006mod009E:feature:,0000,00E8"
PATTERNS = {
    "install acpi_* /bin/true": True,
    "install acpi-* /bin/false": True,
    "install *cpu* :": True,
    "install ac?i_cpufreq /bin/true": True,
    "install acpi_* /sbin/modprobe -i acpi_cpufreq": False,
    "install pcc_* /bin/true": False,
    "blacklist acpi_*": False,  # no pattern there
    "alias acpi_cpufreq off": True,
    "alias cpu:type:x86,* off": True,
    "alias cpu:type:aarch64* off": False,
    "alias cpu:type:x86,* acpi_cpufreq": False,
    "alias acpi_cpufreq offset": False,
    "alias net-pf-* off": False,
}


@pytest.mark.parametrize("line", PATTERNS)
def test_a_pattern_keeps_away_what_it_fits(tmp_path: Path, line: str) -> None:
    write(tmp_path, "sys/devices/system/cpu/modalias", f"{MODALIAS}\n")
    write(tmp_path, "etc/modprobe.d/a.conf", f"{line}\n")
    assert any(one.bars("acpi_cpufreq") for one in read_barred(Sysroot(str(tmp_path)))) is PATTERNS[line]


def test_of_two_files_of_one_name_the_first_counts(tmp_path: Path) -> None:
    write(tmp_path, "usr/lib/modprobe.d/a.conf", "blacklist one\n")
    write(tmp_path, "etc/modprobe.d/a.conf", "blacklist two\n")
    write(tmp_path, "run/modprobe.d/b.conf", "blacklist three\n")
    write(tmp_path, "etc/modprobe.d/c.txt", "blacklist four\n")
    assert [one.modules for one in read_barred(Sysroot(str(tmp_path)))] == ["two", "three"]


def test_the_lines_are_taken_out_and_no_others(tmp_path: Path) -> None:
    write(tmp_path, "etc/modprobe.d/it's.conf", TEXT)
    command = taking_out_lines(read_barred(Sysroot(str(tmp_path))))
    for part in command.split(" && "):
        words = shlex.split(part.removeprefix("sudo "))
        subprocess.run([*words[:-1], str(tmp_path) + words[-1]], check=True)
    left = (tmp_path / "etc/modprobe.d/it's.conf").read_text()
    assert list(parse_modprobe(left)) == []
    assert len(left.splitlines()) == len(TEXT.splitlines()) - 6
