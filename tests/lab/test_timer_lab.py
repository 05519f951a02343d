"""The timer's preflight under a real systemd: taken as written, and what waits is handed on, confined."""

from .lab import Lab
from .product import HOST_FILE, tunectl

UNITS = ("tunectl-monitor.service", "tunectl-preflight.service", "tunectl-report.service", "tunectl-preflight.timer")
PLACE = "/var/lib/tunectl/preflight"
FOLDER = '[report]\nfolder = "/mnt/fleet/preflight"\nmount = "/mnt/fleet"\n'
DOCUMENT = '{"schema": "tunectl.preflight/1"}'


def exposure(lab: Lab, unit: str) -> float:
    """What `systemd-analyze security` makes of it: 0 is nothing."""
    said = lab.run(f"systemd-analyze security --no-pager {unit} | grep 'Overall exposure'").out
    return float(said.rpartition(": ")[2].split()[0])


def test_systemd_takes_the_units_as_they_are_written_and_what_waits_is_handed_on(installed: Lab) -> None:
    installed.write("/etc/tunectl/host.toml", HOST_FILE + FOLDER)
    assert tunectl(installed, "service install monitor -q").code == 0
    assert tunectl(installed, "service install preflight --at 'Mon..Fri 07:45 Europe/London' -q").code == 0
    checked = installed.run(f"systemd-analyze verify --man=no {' '.join(UNITS)}")
    assert (checked.out, checked.err) == ("", "")
    assert [exposure(installed, unit) <= most for unit, most in zip(UNITS, (2.0, 5.0, 2.2), strict=False)] == [True] * 3
    installed.run("systemctl enable --now tunectl-preflight.timer")
    assert installed.run("systemctl is-enabled tunectl-report").out == "enabled\n", (
        "what waits goes on at the next boot"
    )
    facts = "NextElapseUSecRealtime,RandomizedDelayUSec,FixedRandomDelay,Persistent"
    shown = installed.run(f"systemctl show -p {facts} tunectl-preflight.timer").out
    assert {"RandomizedDelayUSec=5min", "FixedRandomDelay=yes", "Persistent=yes"} < set(shown.splitlines())
    assert "NextElapseUSecRealtime=\n" not in shown

    name = "20261130T074712Z"
    installed.run(f"mkdir -p {PLACE} /mnt/fleet")
    installed.write(f"{PLACE}/{name}.waiting.json", DOCUMENT)
    installed.run("systemctl start tunectl-report")
    installed.wait_for("journalctl -q -u tunectl-report -o cat | grep -q 'is it mounted?; waiting: 1 document'", 60)
    pid = "$(systemctl show -p MainPID --value tunectl-report)"
    status = installed.run(f"cat /proc/{pid}/status").out.split("\n")
    assert {"CapEff:\t0000000000000000", "Cpus_allowed_list:\t0-1"} < set(status)
    installed.run("mount -t tmpfs none /mnt/fleet && mkdir /mnt/fleet/preflight")
    installed.wait_for(f"test -e {PLACE}/{name}.json", 60)
    assert installed.read("/mnt/fleet/preflight/2026-11-30/lab.json") == DOCUMENT
    installed.wait_for("! systemctl is-active -q tunectl-report")
    assert installed.run("systemctl show -p Result --value tunectl-report").out == "success\n"
