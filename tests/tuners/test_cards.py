"""What is declared of a network card, in each place that a distribution has for it, and programs that name one."""

import os
from pathlib import Path
from typing import Any

import pytest

from tests.trees import write
from tunectl.host.sysroot import Sysroot
from tunectl.tuners.cards import read_link_files
from tunectl.tuners.conflicts import conflicts, unseen
from tunectl.tuners.find import read_tuners

CARD = "enp5s0"
OURS: dict[str, Any] = {
    "net.adaptive_rx": False,
    "net.rx_usecs": 0,
    "net.rx_ring": 4096,
    "net.combined_channels": 4,
    "net.gro": False,
    "net.lro": False,
    "net.gro_flush_timeout_ns": 0,
    "net.rps_cpus": frozenset({2, 3}),
    "net.queue_irqs": frozenset({0, 1}),
}
Row = tuple[str, str, int]  # (row of check.other_tuners, knob, line)


@pytest.fixture
def host(tmp_path: Path) -> Path:
    """A host with two cards: enp5s0 (ixgbe), which carries market data, and eno1 (igb), which does not."""
    for name, device, driver in ((CARD, "0000:05:00.0", "ixgbe"), ("eno1", "0000:01:00.0", "igb")):
        write(tmp_path, f"sys/devices/pci0000:00/{device}/vendor", "0x8086\n")
        write(tmp_path, f"sys/class/net/{name}/type", "1\n")
        (tmp_path / f"sys/class/net/{name}/device").symlink_to(f"../../../devices/pci0000:00/{device}")
        write(tmp_path, f"sys/bus/pci/drivers/{driver}/x", "")
        link = tmp_path / f"sys/devices/pci0000:00/{device}/driver"
        link.symlink_to(f"../../../bus/pci/drivers/{driver}")
    write(tmp_path, f"sys/class/net/{CARD}/address", "52:54:00:ab:cd:01\n")
    write(tmp_path, "sys/devices/system/cpu/present", "0-3\n")
    return tmp_path


def remembers(host: Path, link_file: str) -> None:
    """What udev keeps of the card since it appeared."""
    write(host, f"sys/class/net/{CARD}/ifindex", "2\n")
    write(host, "run/udev/data/n2", f"I:1\nE:ID_NET_LINK_FILE={link_file}\nE:ID_PATH=pci-0000:05:00.0\n")


def judged(host: Path) -> tuple[list[Row], list[Row]]:
    """(what differs, what is not known) of the card that is asked for."""
    tuners = read_tuners(Sysroot(str(host)), (CARD,))
    differs = [(tuner.name, one.knob, int(one.place.rpartition(":")[2])) for tuner in tuners
               for one in conflicts(tuner, OURS)]  # fmt: skip
    named = [(tuner.name, one.knob, one.line) for tuner in tuners for one in tuner.settings
             if one.named and one.knob in OURS]  # fmt: skip
    assert bool(named) is any(unseen(tuner, OURS) for tuner in tuners)
    return differs, named


def lay(host: Path, files: dict[str, str], mode: int = 0o644) -> None:
    for path, text in files.items():
        write(host, path, text)
        (host / path).chmod(mode)


def link(match: str, options: str = "RxCoalesceSec=50us\n", name: str = "10-md.link") -> dict[str, str]:
    return {f"etc/systemd/network/{name}": f"[Match]\n{match}\n[Link]\n{options}"}


IFACE = f"auto {CARD}\niface {CARD} inet static\n  address 192.0.2.2/24\n"
KEYFILE = "etc/NetworkManager/system-connections/md.nmconnection"
NAMED = f"[connection]\nid=md\ntype=ethernet\ninterface-name={CARD}\n"
RULE = f'ACTION=="add", SUBSYSTEM=="net", KERNEL=="{CARD}", '
RHEL = f"etc/sysconfig/network-scripts/ifcfg-{CARD}"
SUSE = f"etc/sysconfig/network/ifcfg-{CARD}"

DIFFERS: list[tuple[dict[str, str], list[Row]]] = [
    (link(f"OriginalName={CARD}"), [("link files", "net.rx_usecs", 4)]),
    (link("Driver=ixgbe", "RxBufferSize=max\nCombinedChannels=8\n"),
     [("link files", "net.rx_ring", 4), ("link files", "net.combined_channels", 5)]),
    (link("Path=pci-0000:05:*", "GenericReceiveOffload=yes\nLargeReceiveOffload=on\nUseAdaptiveRxCoalesce=1\n"),
     [("link files", "net.gro", 4), ("link files", "net.lro", 5), ("link files", "net.adaptive_rx", 6)]),
    (link("MACAddress=52:54:00:AB:CD:01", "ReceivePacketSteeringCPUMask=all\nRxCoalesceSec=1ms 500us\n"),
     [("link files", "net.rps_cpus", 4), ("link files", "net.rx_usecs", 5)]),
    (link("OriginalName=* !x", "RxCoalesceSec=1\n"), [("link files", "net.rx_usecs", 4)]),
    ({**link("OriginalName=*", ""), "run/systemd/network/10-md.link.d/a.conf": "[Link]\nRxCoalesceSec=9us\n"},
     [("link files", "net.rx_usecs", 2)]),
    ({"etc/network/interfaces": f"{IFACE}  offload-lro on\n  hardware-irq-coalesce-rx-usecs 50\n"},
     [("ifupdown", "net.lro", 4), ("ifupdown", "net.rx_usecs", 5)]),
    ({"etc/network/interfaces": f"{IFACE}\thardware-dma-ring-rx 512\n  post-up ethtool -K $IFACE gro on\n"},
     [("ifupdown", "net.rx_ring", 4), ("ifupdown", "net.gro", 5)]),
    ({"etc/network/interfaces": "source interfaces.d/*\n",
      "etc/network/interfaces.d/md": f"{IFACE}  up /sbin/ethtool -C {CARD} \\\n   rx-usecs 50\n  gro-offload on\n"},
     [("ifupdown", "net.rx_usecs", 4), ("ifupdown", "net.gro", 6)]),
    ({"etc/network/interfaces": f"iface base inet static\n  offload-gro on\niface {CARD} inet manual inherits base\n"},
     [("ifupdown", "net.gro", 2)]),
    ({KEYFILE: f"{NAMED}[ethtool]\nfeature-gro=true\ncoalesce-adaptive-rx=1\nring-rx=512\n"},
     [("NetworkManager", f"net.{key}", line) for key, line in (("gro", 6), ("adaptive_rx", 7), ("rx_ring", 8))]),
    ({RHEL: f'DEVICE={CARD}\nETHTOOL_OPTS="-K ${{DEVICE}} gro on; -C {CARD} rx-usecs 50"\n'},
     [("ifcfg", "net.gro", 2), ("ifcfg", "net.rx_usecs", 2)]),
    ({SUSE: "BOOTPROTO='static'\nETHTOOL_OPTIONS='-G iface rx 512'\nETHTOOL_OPTIONS_co='-C iface rx-usecs 9'\n"},
     [("ifcfg", "net.rx_ring", 2), ("ifcfg", "net.rx_usecs", 3)]),
    ({"etc/netplan/1.yaml": f"network:\n  ethernets:\n    {CARD}:\n      large-receive-offload: true\n"},
     [("netplan", "net.lro", 4)]),
    ({"etc/netplan/1.yaml": "network:\n  ethernets:\n    md:\n      match:\n        driver: ixg*\n"
      "      generic-receive-offload: yes\n"}, [("netplan", "net.gro", 6)]),
    ({"etc/netplan/1.yaml": "network:\n  ethernets:\n    md:\n      match: {driver: \"ixg*\"}\n"
      "      generic-receive-offload: yes\n"}, [("netplan", "net.gro", 5)]),
    ({"etc/udev/rules.d/6.rules": f'{RULE}RUN+="/usr/sbin/ethtool -C $name adaptive-rx on"\n'},
     [("udev rules", "net.adaptive_rx", 1)]),
    ({"etc/udev/rules.d/6.rules": f'# x\n{RULE} \\\n  ATTR{{gro_flush_timeout}}="20000"\n'},
     [("udev rules", "net.gro_flush_timeout_ns", 2)]),
    ({"etc/udev/rules.d/6.rules": 'SUBSYSTEM=="queues", KERNEL=="rx-*", ATTR{rps_cpus}="f"\n'},
     [("udev rules", "net.rps_cpus", 1)]),
    ({"etc/udev/rules.d/6.rules": f'{RULE}RUN+="/bin/sh -c \'echo 9 > /sys/class/net/%k/gro_flush_timeout\'"\n'},
     [("udev rules", "net.gro_flush_timeout_ns", 1)]),
    ({"etc/udev/rules.d/6.rules": f'{RULE}ATTR{{gro_flush_timeout}}="9"\n',
      "etc/udev/rules.d/7.rules": 'SUBSYSTEM=="net", KERNEL=="eno1", ATTR{gro_flush_timeout}="0"\n'},
     [("udev rules", "net.gro_flush_timeout_ns", 1)]),
    ({"etc/crontab": f"@reboot root ethtool -C {CARD} rx-usecs 5\n@daily root ethtool -C {CARD} rx-usecs 9\n",
      "usr/sbin/cron": ""}, [("cron", "net.rx_usecs", 1), ("cron", "net.rx_usecs", 2)]),
]  # fmt: skip


@pytest.mark.parametrize(("files", "rows"), DIFFERS)
def test_what_is_declared_otherwise_is_named_with_its_line(host: Path, files: dict[str, str], rows: list[Row]) -> None:
    lay(host, files)
    assert judged(host) == (rows, [])


HOOK = f'#!/bin/sh\n[ "$1" = {CARD} ] || exit 0\nethtool -C "$1" rx-usecs "$USECS"\n'
UNKNOWN: list[tuple[dict[str, str], Row]] = [
    (link("OriginalName=eth0"), ("link files", "net.rx_usecs", 4)),
    (link("OriginalName=*\nKernelVersion=>=6.8"), ("link files", "net.rx_usecs", 5)),
    (link("PermanentMACAddress=52:54:00:00:00:99"), ("link files", "net.rx_usecs", 4)),
    ({KEYFILE: "[connection]\ntype=ethernet\n[ethtool]\nring-rx=512\n"}, ("NetworkManager", "net.rx_ring", 4)),
    ({"etc/network/interfaces": f"{IFACE}  post-up /usr/local/sbin/tune\n", "usr/local/sbin/tune": HOOK},
     ("ifupdown", "net.rx_usecs", 3)),
    ({"etc/network/if-up.d/tune": HOOK}, ("network hooks", "net.rx_usecs", 3)),
    ({"etc/NetworkManager/dispatcher.d/50-tune": HOOK}, ("network hooks", "net.rx_usecs", 3)),
    ({"usr/lib/NetworkManager/dispatcher.d/pre-up.d/50-tune": HOOK}, ("network hooks", "net.rx_usecs", 3)),
    ({"etc/networkd-dispatcher/routable.d/50-tune": HOOK}, ("network hooks", "net.rx_usecs", 3)),
    ({"sbin/ifup-local": HOOK}, ("network hooks", "net.rx_usecs", 3)),
    ({"usr/lib/systemd/system-sleep/tune": HOOK}, ("sleep hooks", "net.rx_usecs", 3)),
    ({SUSE: "POST_UP_SCRIPT='wicked:/etc/tune.sh'\n", "etc/tune.sh": HOOK}, ("ifcfg", "net.rx_usecs", 3)),
    ({"etc/udev/rules.d/6.rules": f'{RULE}RUN+="/usr/local/sbin/tune $name"\n', "usr/local/sbin/tune": HOOK},
     ("udev rules", "net.rx_usecs", 3)),
    ({"etc/udev/rules.d/6.rules": 'SUBSYSTEM=="net", KERNEL=="eth0", RUN+="/sbin/ethtool -C $name rx-usecs 9"\n'},
     ("udev rules", "net.rx_usecs", 1)),
    ({"etc/netplan/1.yaml": f"network: {{ethernets: {{{CARD}: {{generic-receive-offload: true}}}}}}\n"},
     ("netplan", "net.gro", 1)),
    ({"etc/rc.local": "#!/bin/sh\nE=/sbin/ethtool\n$E -C enp5s0 rx-usecs 9\n"}, ("rc.local", "net.rx_usecs", 3)),
    ({"etc/rc.local": "#!/bin/sh\nethtool -C enp5s0np0 rx-usecs 9\n"}, ("rc.local", "net.rx_usecs", 2)),
    ({"etc/rc.local": "#!/bin/sh\nfor q in /sys/class/net/*/queues/rx-*; do echo f > $q/rps_cpus; done\n"},
     ("rc.local", "net.rps_cpus", 2)),
]  # fmt: skip


@pytest.mark.parametrize(("files", "row"), UNKNOWN)
def test_what_a_program_or_a_condition_decides_is_not_known(host: Path, files: dict[str, str], row: Row) -> None:
    lay(host, files, 0o755)
    differs, named = judged(host)
    assert (differs, row in named) == ([], True)


SILENT: list[dict[str, str]] = [
    link("OriginalName=eno1"),
    link(f"OriginalName=!{CARD}"),
    link("Driver=mlx5_core"),
    link("Type=wlan"),
    link(f"OriginalName={CARD}", "RxCoalesceSec=0\nUseAdaptiveRxCoalesce=no\nReceivePacketSteeringCPUMask=disable\n"),
    link(f"OriginalName={CARD}", "GenericReceiveOffload=f\nUseAdaptiveRxCoalesce=N\n"),
    {"etc/systemd/network/10-md.link": "[Link]\nRxCoalesceSec=50us\n"},  # without conditions it is ignored
    {**link("OriginalName=*", ""), **link(f"OriginalName={CARD}", name="20-late.link")},  # the first is the only one
    {**link(f"OriginalName={CARD}"), **link("Driver=ixgbe", "MTUBytes=9000\n", "05-first.link")},
    {"etc/systemd/network/10-md.link": "", "usr/lib/systemd/network/10-md.link": f"[Match]\nOriginalName={CARD}\n"
     "[Link]\nRxCoalesceSec=50us\n"},
    {"etc/network/interfaces": "iface eno1 inet dhcp\n  offload-gro on\n  post-up ethtool -C $IFACE rx-usecs 50\n"},
    {"etc/network/interfaces": f"{IFACE}  offload-gro off\n#  offload-lro on\n  dns-nameservers 192.0.2.1\n"},
    {"etc/network/interfaces": f"{IFACE}  down ethtool -C {CARD} rx-usecs 50\n"},
    {KEYFILE: f"{NAMED}[ethtool]\nfeature-gro=false\ncoalesce-rx-usecs=0\n"},
    {KEYFILE: "[connection]\ntype=wifi\n[ethtool]\nfeature-gro=true\n"},
    {f"{KEYFILE}.bak": f"{NAMED}[ethtool]\nfeature-gro=true\n"},
    {"etc/sysconfig/network-scripts/ifcfg-eno1": 'DEVICE=eno1\nETHTOOL_OPTS="-K eno1 gro on"\n'},
    {f"{RHEL}.rpmsave": f'DEVICE={CARD}\nETHTOOL_OPTS="-K {CARD} gro on"\n'},
    {"etc/netplan/1.yaml": "network:\n  ethernets:\n    eno1:\n      generic-receive-offload: true\n"},
    {"etc/netplan/1.yaml": f"network:\n  ethernets:\n    {CARD}:\n      generic-receive-offload: false\n"},
    {"etc/udev/rules.d/6.rules": 'SUBSYSTEM=="net", KERNEL=="eno1", RUN+="/sbin/ethtool -C $name rx-usecs 9"\n'},
    {"etc/udev/rules.d/6.rules": 'SUBSYSTEM=="net", DRIVERS=="mlx5_core", ATTR{gro_flush_timeout}="9"\n'},
    {"etc/udev/rules.d/6.rules": 'ACTION=="remove", SUBSYSTEM=="net", RUN+="/sbin/ethtool -C $name rx-usecs 9"\n'},
    {"etc/udev/rules.d/6.rules": f'{RULE}ATTR{{gro_flush_timeout}}="9"\n{RULE}ATTR{{gro_flush_timeout}}="0"\n'},
    {"etc/rc.local": "#!/bin/sh\nethtool -C eno1 rx-usecs 9\nethtool -C enp6s0 rx-usecs 9\n"},
    {"etc/network/if-up.d/ethtool": "#!/bin/sh\nETHTOOL=/sbin/ethtool\n$ETHTOOL --coalesce \"$IFACE\" $SETTINGS\n"},
    {"etc/network/if-up.d/tune.sh": HOOK},  # run-parts leaves it out
    {"etc/NetworkManager/dispatcher.d/50-x": f"#!/bin/sh\nethtool -c {CARD} > /tmp/x\n"},
]  # fmt: skip


@pytest.mark.parametrize("files", SILENT)
def test_what_agrees_is_for_another_card_or_is_never_read_is_no_matter(host: Path, files: dict[str, str]) -> None:
    lay(host, files, 0o755)
    assert judged(host) == ([], [])


def test_a_hook_that_may_not_be_executed_is_not_run(host: Path) -> None:
    lay(host, {"etc/network/if-up.d/tune": HOOK})
    assert judged(host) == ([], [])


def test_without_a_card_of_ours_no_cards_settings_are_a_matter(host: Path) -> None:
    lay(
        host,
        {
            **link("OriginalName=*"),
            KEYFILE: NAMED + "[ethtool]\nfeature-gro=true\n",
            "etc/crontab": "@daily root ethtool -C $X rx-usecs 9\n",
            "usr/sbin/cron": "",
        },
    )
    tuners = read_tuners(Sysroot(str(host)), ())
    assert not any(conflicts(tuner, OURS) or unseen(tuner, OURS) for tuner in tuners)


def test_which_link_file_a_card_got_udev_remembers(host: Path) -> None:
    """By conditions that nobody can judge here: the card's permanent address is another one than it has."""
    lay(host, link("PermanentMACAddress=52:54:00:00:00:99"))
    remembers(host, "/etc/systemd/network/10-md.link")
    assert judged(host) == ([("link files", "net.rx_usecs", 4)], [])
    remembers(host, "/usr/lib/systemd/network/99-default.link")
    assert judged(host) == ([], [("link files", "net.rx_usecs", 4)])  # a recording: the file may be newer
    root = Sysroot(str(host))
    root.live = True
    os.utime(host / "etc/systemd/network/10-md.link", (0, 0))  # a package keeps the time of its own file
    assert [setting.named for setting in read_link_files(root) if setting.instance == CARD] == [True]
    os.utime(host / "run/udev/data/n2", (4e9, 4e9))
    assert [setting.instance for setting in read_link_files(root)] == ["eno1"]
    os.utime(host / "run/udev/data/n2", (0, 0))
    assert [setting.named for setting in read_link_files(root) if setting.instance == CARD] == [True]
