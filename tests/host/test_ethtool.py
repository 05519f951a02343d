"""ethtool's netlink interface for real: a veth pair and a tap device in a network namespace of their own.

What these devices offer: channels and features (veth), coalesced frames (tap). Rings are read of the machine's own NIC
where there is one. netdevsim would offer more; few kernels have it.
"""

import errno
import functools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import TUNECTL
from tests.host.namespaces import namespace
from tests.hosts.builder import HostFactory
from tunectl.host.ethtool import MESSAGES, PREFIX, open_setting, paths_of, write_setting
from tunectl.host.recording import record
from tunectl.host.sysroot import Sysroot

READER = """
import json, sys
from tunectl.host.writable import WritableSysroot
root = WritableSysroot()
def attempt(path, text):
    try: root.write_value(path, text)
    except OSError as error: return error.errno
def read(path):
    try: return root.read_value(path)
    except OSError as error: return error.errno
print(json.dumps([attempt(*word.split("=")) if "=" in word else read(word) for word in sys.argv[1:]]))
"""


def said(*words: str) -> Any:
    """The answer to each read (`path`) and write (`path=value`): the value, or the errno."""
    return json.loads(namespace('exec "$@"\n', sys.executable, "-c", READER, *words))


@pytest.mark.slow
def test_what_is_written_is_read() -> None:
    channels, gro, frames = (
        "ethtool/v0/channels/rx-count",
        "ethtool/v0/features/rx-gro",
        "ethtool/tap0/coalesce/rx-max-frames",
    )
    assert said(channels, f"{channels}=2", channels, "ethtool/v0/channels/tx-count") == ["4", None, "2", "4"]
    assert said(gro, f"{gro}=1", gro, f"{gro}=0", gro) == ["0", None, "1", None, "0"]
    assert said(frames, f"{frames}=16", frames) == ["0", None, "16"]


REFUSED = [
    ("ethtool/v0/rings/rx", errno.ENOENT),
    ("ethtool/v0/coalesce/rx-usecs", errno.ENOENT),
    ("ethtool/v0/features/rx-ntuple-filter", errno.ENOENT),
    ("ethtool/eth99/channels/rx-count", errno.ENOENT),
    ("ethtool/v0/channels/secrets", errno.ENOENT),
    ("ethtool/v0", errno.ENOENT),
    ("ethtool/v0/channels/rx-count=9", errno.EINVAL),
    ("ethtool/v0/channels/rx-count=many", errno.EINVAL),
    ("ethtool/v0/rings/rx=64", errno.EOPNOTSUPP),
    ("ethtool/eth99/channels/rx-count=1", errno.ENOENT),
    ("ethtool/a-name-that-is-longer-than-interfaces-are/rings/rx", errno.ENOENT),
]


@functools.cache
def refused() -> dict[str, int]:
    """The answer to each, of one namespace: none of them changes anything for the next."""
    paths = [path for path, _ in REFUSED]
    return dict(zip(paths, said(*paths), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize(("path", "number"), REFUSED)
def test_what_is_not_offered_has_an_errno(path: str, number: int) -> None:
    assert refused()[path] == number


# The network's rows alone: the rest of this machine is none of this test's business.
PROFILE = """
[knobs."net.rx_channels"]
value = 2
reason = "test"
[knobs."net.tx_channels"]
value = 1
reason = "test"
[knobs."net.rx_frames"]
value = 16
reason = "test"
[knobs."net.gro"]
value = true
reason = "test"
[knobs."net.rps_cpus"]
value = "housekeeping"
reason = "test"
[knobs."net.rps_flow_cnt"]
value = 256
reason = "test"
[knobs."net.napi_defer_hard_irqs"]
value = 2
reason = "test"
[knobs."net.gro_flush_timeout_ns"]
value = 20000
reason = "test"
"""
ROUND = """
state() {
  grep . /sys/class/net/v0/queues/*/?ps_* /sys/class/net/*/napi_defer_hard_irqs /sys/class/net/*/gro_flush_timeout
  "$3" -c "$4" ethtool/v0/channels/rx-count ethtool/v0/channels/tx-count ethtool/v0/features/rx-gro
  "$3" -c "$4" ethtool/tap0/coalesce/rx-max-frames
}
echo 2 > /sys/class/net/v0/queues/rx-0/rps_cpus   # on the isolated CPU
echo 1 > /sys/class/net/v0/queues/rx-3/rps_cpus   # the operator's own, on a queue that goes away
echo 2 > /sys/class/net/v0/queues/tx-3/xps_cpus
state "$@" > "$2/before"
"$3" "$1" --host "$2/host.toml" --state "$2/state" apply --yes --format json > "$2/applied" || true
"$3" "$1" --host "$2/host.toml" --state "$2/state" verify --format json > "$2/verified"
"$3" "$1" --host "$2/host.toml" --state "$2/state" restore --format json > "$2/restored"
state "$@" > "$2/after"
"""


@pytest.mark.slow
def test_applied_verified_and_restored(tmp_path: Path) -> None:
    if os.cpu_count() == 1:
        pytest.skip("needs two CPUs")
    (tmp_path / "net.toml").write_text(PROFILE)
    nics = 'allow_split_siblings = true\n[network]\ninterfaces = ["v0", "tap0"]\n'
    (tmp_path / "host.toml").write_text(f'profile = "net.toml"\nisolated = "1"\n{nics}')
    namespace(ROUND, str(TUNECTL), str(tmp_path), sys.executable, READER)
    changes = {one["target"]: one for one in json.loads((tmp_path / "applied").read_text())["changes"]}
    assert changes["net.rx_channels[v0]"]["result"] == "changed"
    assert changes["net.rps_cpus[v0/rx-0]"]["result"] == "changed"
    verified = json.loads((tmp_path / "verified").read_text())
    assert verified["verdict"] == "compliant"
    found = {one["target"]: one["observed"] for one in verified["findings"]}
    assert (found["net.rx_channels[v0]"], found["net.rx_frames[tap0]"], found["net.gro[v0]"]) == (2, 16, "on")
    assert "net.rps_cpus[v0/rx-2]" not in found
    restored = json.loads((tmp_path / "restored").read_text())
    assert {one["result"] for one in restored["results"]} <= {"restored", "already"}
    before, after = (tmp_path / "before").read_text(), (tmp_path / "after").read_text()
    assert "rx-3/rps_cpus:1" in before
    assert before == after
    assert not (tmp_path / "state").exists()


@pytest.mark.slow
def test_a_recording_answers_as_the_machine_did(tmp_path: Path) -> None:
    """Of this machine's own interfaces, only read."""
    live = Sysroot()
    record(live, str(tmp_path / "host.tar.gz"))
    (tmp_path / "copy").mkdir()
    subprocess.run(["tar", "xf", tmp_path / "host.tar.gz", "-C", tmp_path / "copy"], check=True)
    copy = Sysroot(str(tmp_path / "copy"))
    paths = [path for nic in live.listdir("sys/class/net") for path in paths_of(nic)]
    settings = {path: live.get(path) for path in paths}
    assert {path: copy.get(path) for path in paths} == settings
    assert any(settings.values())


def test_recorded_hosts_have_what_the_rows_read(host_root: HostFactory) -> None:
    known = {path.partition("/")[2] for path in paths_of("x")}
    for name in ("lab4", "xeon2s", "epyc"):
        root = Sysroot(str(host_root(name)))
        files = [path.removeprefix(PREFIX) for path in root.walk("ethtool")]
        assert files
        assert {path.partition("/")[2] for path in files} <= {path.partition("/")[2] for path in known}


def test_names_are_the_kernels_own() -> None:
    """Attributes are numbered by their place: this machine's header says whether each stands in its own."""
    header = Path("/usr/include/linux/ethtool_netlink.h")
    if not header.exists():
        pytest.skip("no kernel headers (Debian: linux-libc-dev)")
    words = header.read_text().replace(",", " ").split()
    for group, message in MESSAGES.items():
        mark = f"ETHTOOL_A_{group.upper()}_"
        enum = [word.removeprefix(mark) for word in words if word.startswith(mark)]
        assert enum[:2] == ["UNSPEC", "HEADER"]
        ours = [name.upper().replace("-", "_") for name in message.attributes]
        assert enum[2 : 2 + len(ours)] == ours


def test_nothing_is_imported_for_a_path_that_cannot_be() -> None:
    with pytest.raises(FileNotFoundError):
        open_setting("ethtool/eth0/nonsense/rx")
    script = "import sys, tunectl.tuning.inspection; print('pyroute2' in sys.modules, 'asyncio' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout == "False False\n"


@pytest.mark.parametrize(
    ("path", "number"),
    [*(("rings/rx", text) for text in ("-1", "4294967296", "1" * 40, "4.5", "")), ("coalesce/use-adaptive-rx", "256")],
)
def test_a_number_that_no_attribute_holds_is_refused(path: str, number: str) -> None:
    with pytest.raises(OSError, match="Invalid argument"):
        write_setting(f"ethtool/eth0/{path}", number)


@pytest.mark.slow
def test_a_driver_s_own_statistics_and_firmware_are_asked() -> None:
    """veth counts by queue; no firmware runs it. lo has no statistics, and a name that is no interface has nothing."""
    text, firmware, *absent = said(
        "ethtool/v0/statistics",
        "ethtool/v0/firmware",
        "ethtool/lo/statistics",
        "ethtool/eth99/statistics",
        "ethtool/a-name-that-is-longer-than-interfaces-are/firmware",
        "ethtool/../statistics",
    )
    counts = dict(line.rsplit(" ", 1) for line in text.splitlines())
    assert counts["peer_ifindex"].isdecimal()
    assert any(name.startswith("rx_queue_0_") for name in counts)
    assert firmware == ""
    assert set(absent) == {errno.ENOENT}
