"""The rows of the NICs beyond the table of sabotages: words, limits, what is not there, and what kernels refuse."""

from pathlib import Path

import pytest

from tests.conftest import write_host_file
from tests.fake_kernel import KernelRoot, Manners
from tests.hosts.builder import HostFactory
from tests.trees import differences, picture
from tests.tuned import apply, inspection_on, restore
from tunectl.errors import UsageError
from tunectl.knobs.drivers.irqaffinity import spread
from tunectl.model import Finding

NET = "sys/class/net/ens2f0"


def xeon(host_root: HostFactory, tmp_path: Path, knobs: str, nics: str = '"ens2f0"') -> Path:
    """A stock xeon2s of one's own, of which nothing but these knobs is asked."""
    root = host_root.fresh("xeon2s", tmp_path)
    rows = "".join(
        f'[knobs."{line.partition(" = ")[0]}"]\nvalue = {line.partition(" = ")[2]}\nreason = "test"\n'
        for line in knobs.splitlines()
    )
    (root / "etc/tunectl").mkdir(parents=True)
    (root / "etc/tunectl/only.toml").write_text(rows)
    write_host_file(root, f'profile = "only.toml"\nisolated = "4-7,20-23"\n[network]\ninterfaces = [{nics}]\n')
    return root


def findings(root: Path) -> dict[str, Finding]:
    return {one.target: one for one in inspection_on(root).assess().findings}


def text(root: Path, path: str) -> str:
    return (root / path).read_text().strip()


def test_what_the_hardware_offers_at_most(host_root: HostFactory, tmp_path: Path) -> None:
    root = xeon(host_root, tmp_path, 'net.rx_ring = "hardware-max"\nnet.combined_channels = 64')
    found = findings(root)
    assert (found["net.rx_ring[ens2f0]"].observed, found["net.rx_ring[ens2f0]"].desired) == (1024, 8192)
    channels = found["net.combined_channels[ens2f0]"]
    assert (channels.outcome, channels.reason) == ("drifted", "ens2f0 takes at most 16")
    apply(root)
    assert text(root, "ethtool/ens2f0/rings/rx") == "8192"
    assert text(root, "ethtool/ens2f0/channels/combined-count") == "8"


@pytest.mark.parametrize("value", ["-1", '"most"', "true", "1.5"])
def test_what_is_no_size_of_a_ring(host_root: HostFactory, tmp_path: Path, value: str) -> None:
    root = xeon(host_root, tmp_path, f"net.rx_ring = {value}")
    with pytest.raises(UsageError, match=r"knobs.net.rx_ring"):
        inspection_on(root)


@pytest.mark.parametrize(
    ("nics", "target"),
    [
        ("", "net.rx_usecs"),
        ('"eth9"', "net.rx_usecs[eth9]"),
        ('"../net/ens2f0"', "net.rx_usecs[../net/ens2f0]"),
        ('"eno1"', "net.rx_usecs[eno1]"),  # whose driver has no such setting
    ],
)
def test_what_is_not_there_is_no_error(host_root: HostFactory, tmp_path: Path, nics: str, target: str) -> None:
    found = findings(xeon(host_root, tmp_path, "net.rx_usecs = 0", nics))
    assert [(one.target, one.outcome) for one in found.values()] == [(target, "unsupported")]


def test_what_cannot_be_read_is_not_taken_for_well(host_root: HostFactory, tmp_path: Path) -> None:
    root = xeon(host_root, tmp_path, "net.rx_usecs = 0")
    (root / "ethtool/ens2f0/coalesce/rx-usecs").write_text("n/a\n")
    assert findings(root)["net.rx_usecs[ens2f0]"].outcome == "unreadable"


def test_steering_keeps_the_housekeeping_cpus_somebody_chose(host_root: HostFactory, tmp_path: Path) -> None:
    root = xeon(host_root, tmp_path, 'net.rps_cpus = "housekeeping"')
    (root / f"{NET}/queues/rx-2/rps_cpus").write_text("000000fc\n")
    (root / f"{NET}/queues/rx-3/rps_cpus").write_text("0000000c\n")
    drifted = [one.target for one in findings(root).values() if one.outcome == "drifted"]
    assert drifted == ["net.rps_cpus[ens2f0/rx-2]"]
    apply(root)
    assert text(root, f"{NET}/queues/rx-2/rps_cpus") == "c"
    assert text(root, f"{NET}/queues/rx-3/rps_cpus") == "0000000c"


def test_queues_are_in_the_order_of_their_numbers(host_root: HostFactory, tmp_path: Path) -> None:
    root = xeon(host_root, tmp_path, "net.rps_flow_cnt = 0")
    for number in (8, 9, 10):
        queue = root / f"{NET}/queues/rx-{number}"
        queue.mkdir()
        (queue / "rps_flow_cnt").write_text("0\n")
    assert list(findings(root))[-2:] == ["net.rps_flow_cnt[ens2f0/rx-9]", "net.rps_flow_cnt[ens2f0/rx-10]"]


def test_interrupts_in_turn() -> None:
    assert spread((60, 61, 62), frozenset({0, 1}), frozenset()) == {60: 0, 61: 1, 62: 0}
    assert spread((60, 61), frozenset({0, 1, 8, 9}), frozenset(range(8, 16))) == {60: 8, 61: 9}
    assert spread((60,), frozenset({0}), frozenset({8})) == {60: 0}
    assert spread((60,), frozenset(), frozenset({8})) == {}


def test_each_queue_has_a_cpu_of_its_own_near_the_nic(host_root: HostFactory, tmp_path: Path) -> None:
    root = xeon(host_root, tmp_path, 'irq.affinity = "housekeeping"\nnet.queue_irqs = "housekeeping"')
    apply(root)
    assert [text(root, f"proc/irq/{irq}/smp_affinity_list") for irq in range(60, 68)] == [str(n) for n in range(8, 16)]
    assert not inspection_on(root).assess().changes


def test_queues_without_a_cpu_that_is_online_are_not_called_well(host_root: HostFactory, tmp_path: Path) -> None:
    root = xeon(host_root, tmp_path, 'net.queue_irqs = "9"')
    online = root / "sys/devices/system/cpu/online"
    online.write_text("0-8,10-31\n")
    found = {name: one for name, one in findings(root).items() if one.knob == "net.queue_irqs"}
    assert {name: one.outcome for name, one in found.items()} == {"net.queue_irqs[ens2f0]": "unreadable"}
    online.write_text("0-31\n")
    assert "net.queue_irqs[60]" in findings(root)


@pytest.mark.parametrize("mode", [0o444, 0o644], ids=["0444 since 6.12", "EIO before"])
def test_an_interrupt_that_the_kernel_manages_is_harmless(host_root: HostFactory, tmp_path: Path, mode: int) -> None:
    root = xeon(host_root, tmp_path, 'net.queue_irqs = "0"')
    (root / "proc/irq/61/smp_affinity_list").chmod(mode)
    kernel = KernelRoot(root, Manners(managed_irqs=frozenset({"61"})))
    apply(kernel)
    finding = findings(root)["net.queue_irqs[61]"]
    assert (finding.outcome, finding.harmful) == ("refused", False)
    assert findings(root)["net.queue_irqs[60]"].outcome == "compliant"


class Driver(KernelRoot):
    """A driver that sets queues up again when its channels are changed: those it no longer has are gone."""

    def replace_file(self, path: str, data: bytes, mode: int | None) -> None:
        """Apply and restore both come this way on a recorded host."""
        super().replace_file(path, data, mode)
        if path != "ethtool/ens2f0/channels/combined-count":
            return
        for number in range(8):
            for name in (f"{NET}/queues/rx-{number}/rps_cpus", f"proc/irq/{60 + number}/smp_affinity_list"):
                place = Path(self.resolve(name))
                place.unlink(missing_ok=True)
                if number < int(data):
                    place.write_text("0-31\n" if "irq" in name else "00000000\n")


@pytest.mark.slow
def test_what_a_change_of_channels_takes_away_comes_back(host_root: HostFactory, tmp_path: Path) -> None:
    root = xeon(host_root, tmp_path, 'net.combined_channels = 2\nirq.affinity = "housekeeping"')
    for number, cpus in ((1, "00000003"), (6, "0000000c")):
        (root / f"{NET}/queues/rx-{number}/rps_cpus").write_text(f"{cpus}\n")
    (root / "proc/irq/67/smp_affinity_list").write_text("9\n")
    before = picture(root)
    kernel = Driver(root, Manners())
    run = apply(kernel)
    assert all(result.result == "changed" or result.gone for result in run.applied.results)
    assert not (root / f"{NET}/queues/rx-6/rps_cpus").exists()
    assert text(root, f"{NET}/queues/rx-1/rps_cpus") == "00000000"
    undone = restore(kernel)
    assert undone.complete
    assert {one.result for one in undone.outcome.results} <= {"restored", "already"}
    assert not differences(before, root)


def test_adaptive_moderation_ends_before_a_fixed_wait_is_set(host_root: HostFactory, tmp_path: Path) -> None:
    root = xeon(
        host_root,
        tmp_path,
        "net.rx_usecs = 0\nnet.tx_frames = 1\nnet.adaptive_tx = false\n"
        "net.adaptive_rx = false\nnet.combined_channels = 4",
    )
    kernel = KernelRoot(root, Manners())
    apply(kernel)
    assert [path.rpartition("/")[2] for path in kernel.written] == [
        "combined-count",
        "use-adaptive-rx",
        "use-adaptive-tx",
        "rx-usecs",
        "tx-max-frames",
    ]
