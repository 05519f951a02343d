"""A script of /etc/grub.d that makes entries without what the settings give."""

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.bootloader.hosts import LINE as WORDS
from tests.bootloader.hosts import boot_findings, wish
from tests.hosts.builder import HostFactory
from tests.tuned import apply
from tunectl.bootloader.grubmakers import withheld
from tunectl.host.sysroot import Sysroot
from tunectl.kinds import update_grub

SCRIPT = "etc/grub.d/10_linux"
DEFAULT = "GRUB_CMDLINE_LINUX_DEFAULT"
# As 10_linux has them.
CALLS = """\
#! /bin/sh
set -e
  for word in $GRUB_CMDLINE_LINUX_DEFAULT; do
    if [ "$word" = splash ]; then
      GRUB_CMDLINE_LINUX_DEFAULT="$GRUB_CMDLINE_LINUX_DEFAULT \\$vt_handoff"
    fi
  done
linux_entry ()
{
  args="$4"
  cat << EOF
	linux	${rel_dirname}/${basename} root=${device} ro ${args}
EOF
}
    linux_entry "${OS}" "${version}" simple \\
    "${GRUB_CMDLINE_LINUX} ${GRUB_CMDLINE_LINUX_DEFAULT}"
  linux_entry "${OS}" "${version}" advanced \\
              "${GRUB_CMDLINE_LINUX} ${GRUB_CMDLINE_LINUX_DEFAULT}"
    linux_entry "${OS}" "${version}" recovery \\
                "${GRUB_CMDLINE_LINUX_RECOVERY} ${GRUB_CMDLINE_LINUX}"
"""


def script(root: Path, text: str, name: str = SCRIPT, mode: int = 0o755) -> Path:
    place = root / name
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)
    place.chmod(mode)
    return place


def hard_wired(text: str) -> str:
    """`sed -i 's/\\${GRUB_CMDLINE_LINUX_DEFAULT}/quiet/'`"""
    return text.replace(f"${{{DEFAULT}}}", "quiet")


@pytest.fixture
def tuned(host_root: HostFactory, tmp_path: Path) -> Path:
    """A host that booted with our arguments and has 10_linux."""
    root = host_root.fresh("lab4", tmp_path, tuned_boot=frozenset({2, 3}))
    (root / "etc/default/grub").write_text('GRUB_CMDLINE_LINUX_DEFAULT="quiet"\n')
    wish(root)
    script(root, CALLS)
    apply(root)
    return root


def is_fine(root: Path) -> bool:
    return {one.outcome for one in boot_findings(root).values()} == {"compliant"}


HARM: list[Callable[[str], str]] = [
    hard_wired,
    lambda text: text.replace('simple \\\n    "${GRUB_CMDLINE_LINUX} ${GRUB_CMDLINE_LINUX_DEFAULT}"', 'simple "ro"'),
    lambda text: text.replace("set -e", 'GRUB_CMDLINE_LINUX_DEFAULT="quiet"'),
    lambda text: text.replace("set -e", "export GRUB_CMDLINE_LINUX_DEFAULT="),
    lambda text: text.replace("set -e", "unset GRUB_CMDLINE_LINUX_DEFAULT"),
    lambda text: text.replace("set -e", '# no backslash continues a comment \\\nGRUB_CMDLINE_LINUX_DEFAULT="quiet"'),
]


def test_a_script_that_no_longer_hands_them_on_is_named_and_its_fix_mends_it(tuned: Path) -> None:
    for harm in HARM:
        is_mended(tuned, harm(CALLS))


@pytest.mark.parametrize(
    "harmed", [CALLS.replace("ro ${args}", "ro quiet"), CALLS.replace("  cat <<", "  args=quiet\n  cat <<")]
)
def test_a_script_that_ignores_its_arguments_is_named(tuned: Path, harmed: str) -> None:
    script(tuned, harmed)
    found = boot_findings(tuned)
    assert {one.outcome for one in found.values()} == {"drifted"}
    assert all(re.search(rf"/{SCRIPT}:\d+ makes entries without", one.reason) for one in found.values())


def test_a_script_that_nobody_runs_makes_no_entries(tuned: Path) -> None:
    place = script(tuned, CALLS, mode=0o644)
    (fix,) = {str(one.fix) for one in boot_findings(tuned).values()}
    assert fix == f"sudo chmod +x /{SCRIPT} && sudo update-grub"
    place.chmod(0o755)
    assert is_fine(tuned)


def is_mended(tuned: Path, text: str) -> None:
    place = script(tuned, text)
    found = boot_findings(tuned)
    assert {one.outcome for one in found.values()} == {"drifted"}
    (fix,) = {str(one.fix) for one in found.values()}
    for one in found.values():
        assert re.search(rf"/{SCRIPT}:\d+ ", one.reason), one.reason
        assert one.knob.removeprefix("boot.") in one.reason
    for command in fix.split(" && "):
        words = command.removeprefix("sudo ")
        if words != "update-grub":
            subprocess.run(["sh", "-c", words.replace(f" /{SCRIPT}", f" {place}")], check=True)
    subprocess.run(["sh", "-n", place], check=True)
    assert is_fine(tuned)


INNOCENT = (
    CALLS,
    CALLS.replace("${GRUB_CMDLINE_LINUX_RECOVERY}", "single"),  # as up to 2.04
    f"{CALLS}# linux_entry without anything\n",
    CALLS.replace('"${GRUB_CMDLINE_LINUX} ', '"${GRUB_CMDLINE_LINUX} ${GRUB_CMDLINE_LINUX_EXTRA} '),
    CALLS.replace("${GRUB_CMDLINE_LINUX_DEFAULT}", "$GRUB_CMDLINE_LINUX_DEFAULT panic=10"),
    CALLS.replace("  cat <<", '  args="${args} panic=10"\n  cat <<'),
    CALLS.replace('"${GRUB_CMDLINE_LINUX} ${GRUB_CMDLINE_LINUX_DEFAULT}"', '"${arguments}"'),  # made elsewhere
    "#! /bin/sh\nexec tail -n +3 $0\nmenuentry rescue {\n  linux /vmlinuz ro\n}\n",
)
OTHERS = (
    ("etc/grub.d/42_rescue", 0o755),
    ("etc/grub.d/20_linux_xen", 0o755),
    (f"{SCRIPT}.dpkg-old", 0o755),
    (f"{SCRIPT}~", 0o755),
    (f"{SCRIPT}_old", 0o644),
)


def test_a_script_that_hands_them_on_is_no_matter(tuned: Path) -> None:
    for text in INNOCENT:
        script(tuned, text)
        assert is_fine(tuned), text


def test_a_script_that_is_not_run_or_makes_other_entries_is_no_matter(tuned: Path) -> None:
    for name, mode in OTHERS:
        script(tuned, hard_wired(CALLS), name, mode)
        assert is_fine(tuned), name


def test_a_copy_that_is_run_in_its_place_counts(tuned: Path) -> None:
    (tuned / SCRIPT).chmod(0o644)
    script(tuned, hard_wired(CALLS), "etc/grub.d/11_linux_ours")
    assert "11_linux_ours" in boot_findings(tuned)["boot.isolcpus"].reason


def test_arguments_that_reach_the_entries_by_the_other_variable(tuned: Path) -> None:
    """Then it is no matter that the first one does not."""
    script(tuned, hard_wired(CALLS))
    (tuned / "etc/default/grub").write_text(f'GRUB_CMDLINE_LINUX="{WORDS}"\n')
    assert is_fine(tuned)


REAL = Path("/etc/grub.d/10_linux")


@pytest.mark.skipif(not REAL.is_file(), reason="grub-mkconfig is not installed (Debian: grub-common)")
def test_the_script_of_a_distribution(tmp_path: Path) -> None:
    place = tmp_path / SCRIPT
    place.parent.mkdir(parents=True)
    shutil.copy(REAL, place)
    root = Sysroot(str(tmp_path))
    for variable in (DEFAULT, "GRUB_CMDLINE_LINUX"):
        assert withheld(root, variable, update_grub()) is None
    place.write_text(hard_wired(REAL.read_text()))
    found = withheld(root, DEFAULT, update_grub())
    assert found is not None
    assert withheld(root, "GRUB_CMDLINE_LINUX", update_grub()) is None
    subprocess.run(
        ["sh", "-c", str(found.remedy).partition(" && ")[0].removeprefix("sudo ").replace("/etc", f"{tmp_path}/etc")]
    )
    assert withheld(root, DEFAULT, update_grub()) is None
