"""Hardware stamps of an interface: what the kernel says where there are none, and its structures where there are."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.trees import write
from tunectl.host.nics import Stamping, read_stamping
from tunectl.host.sysroot import Sysroot

# The kernel's part of SIOCGHWTSTAMP, by its own headers: few machines that run tests have a card with a clock.
KERNEL = r"""
#include <errno.h>
#include <linux/if.h>
#include <linux/net_tstamp.h>
#include <linux/sockios.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
static int filter(void)
{
    const char *name = getenv("FILTER");
    return strcmp(name, "none") == 0 ? HWTSTAMP_FILTER_NONE : strcmp(name, "all") == 0 ? HWTSTAMP_FILTER_ALL :
           strcmp(name, "some") == 0 ? HWTSTAMP_FILTER_SOME : HWTSTAMP_FILTER_PTP_V2_EVENT;
}
int ioctl(int fd, unsigned long request, ...)
{
    va_list rest;
    va_start(rest, request);
    struct ifreq *asked = va_arg(rest, struct ifreq *);
    va_end(rest);
    if (fd < 0 || request != SIOCGHWTSTAMP || strcmp(asked->ifr_name, "fifteen-letters") != 0)
        return errno = ENODEV, -1;
    ((struct hwtstamp_config *)asked->ifr_data)->rx_filter = filter();
    return 0;
}
"""
SCRIPT = """
import sys
from tunectl.host.sysroot import Sysroot
from tunectl.host.nics import read_stamping
print(*read_stamping(Sysroot(sys.argv[1]), sys.argv[2]), sep="|")
"""


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kernel")
    (folder / "kernel.c").write_text(KERNEL)
    argv = ["cc", "-shared", "-fPIC", "-o", str(folder / "kernel.so"), str(folder / "kernel.c")]
    if (made := subprocess.run(argv, capture_output=True, text=True)).returncode:
        pytest.skip(f"no C compiler, or no kernel headers (Debian: linux-libc-dev): {made.stderr}")
    return folder / "kernel.so"


@pytest.mark.parametrize(("of_kernel", "ours"), [("none", "none"), ("all", "all"), ("some", "some"), ("ptp", "a few")])
def test_the_receive_filter_is_read(kernel: Path, tmp_path: Path, of_kernel: str, ours: str) -> None:
    write(tmp_path, "ethtool/fifteen-letters/tsinfo/phc-index", "4096\n")
    env = {**os.environ, "LD_PRELOAD": str(kernel), "FILTER": of_kernel}
    argv = [sys.executable, "-c", SCRIPT, str(tmp_path), "fifteen-letters"]
    said = subprocess.run(argv, env=env, capture_output=True, text=True, check=True).stdout
    assert said == f"fifteen-letters|/dev/ptp4096|No such file or directory|{ours}|\n"


def test_a_filter_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    write(tmp_path, "ethtool/lo/tsinfo/phc-index", "4096\n")
    found = read_stamping(Sysroot(str(tmp_path)), "lo")
    assert (found.receive_filter, found.filter_error) == ("", "Operation not supported")


@pytest.mark.parametrize("nic", ["lo", "eth99"])
def test_an_interface_without_a_clock(nic: str) -> None:
    assert read_stamping(Sysroot(), nic) == Stamping(nic)
