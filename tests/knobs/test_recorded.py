"""What `snapshot` records follows from the table: every row reads the same on the host and on its recording."""

import fnmatch
import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.knobs.conftest import ISOLATED
from tests.tuned import inspection_on
from tunectl.host.recording import record
from tunectl.host.sysroot import Sysroot
from tunectl.hostfile.config import NUMBERED
from tunectl.knobs import KNOBS, files_read
from tunectl.model import State
from tunectl.tuning.inspection import observe


@pytest.mark.slow
@pytest.mark.parametrize("name", ISOLATED)
def test_a_recording_holds_what_every_row_reads(applied: dict[str, Path], tmp_path: Path, name: str) -> None:
    inspection = inspection_on(applied[name])
    for menu in applied[name].glob("boot/grub*/grub.cfg"):  # a recording keeps no times
        os.utime(menu, (2**32, 2**32))
    record(inspection.root, str(tmp_path / "host.tar.gz"), files=files_read())
    (tmp_path / "copy").mkdir()
    subprocess.run(["tar", "xf", tmp_path / "host.tar.gz", "-C", tmp_path / "copy"], check=True)
    copy = inspection._replace(root=Sysroot(str(tmp_path / "copy")))
    for setting in inspection.config.settings:
        assert observe(copy.view(), [setting]) == observe(inspection.view(), [setting]), setting.knob


def test_every_row_is_read_on_one_of_these_hosts(applied: dict[str, Path]) -> None:
    """Otherwise the test above could not fail for it."""
    read: set[str] = set()
    for root in applied.values():
        inspection = inspection_on(root)
        readings = observe(inspection.view(), inspection.config.settings)
        read |= {one.knob for one in readings if one.state is State.READ}
    assert read == set(KNOBS)


def test_a_number_is_a_cpu_unless_its_facility_says_otherwise(applied: dict[str, Path]) -> None:
    """The `N` of a waiver is the host's last CPU: it must not stand for an interrupt or a memory node."""
    others: set[str] = set()
    for root in applied.values():
        inspection = inspection_on(root)
        present = {str(cpu) for cpu in inspection.config.scope.present}
        readings = observe(inspection.view(), inspection.config.settings)
        others |= {
            KNOBS[one.knob].facility for one in readings if one.instance.isdecimal() and one.instance not in present
        }
    assert others <= set(NUMBERED)
    assert {"irq", "net"} <= others


@pytest.mark.parametrize("name", KNOBS)
def test_what_a_row_describes_is_recorded(name: str) -> None:
    """In a path of the catalogue N, M and PID stand for an instance."""
    driver = KNOBS[name].driver
    for path in driver.describe():
        one = re.sub(r"(?<=[a-z/-])([NM]|PID)(?=/|$)", "0", path.partition(" ")[0])
        if one.startswith("/"):
            assert [pattern for pattern in driver.reads() if fnmatch.fnmatchcase(one[1:], pattern)], path
