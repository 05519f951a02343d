"""The timer's preflight under a real systemd: taken as written, on time, after a loss of power, handed on, confined."""

import json
from typing import Any

import pytest

from . import fresh
from .lab import Lab
from .product import EMULATED_BUDGET, HOST_FILE, tunectl

UNITS = ("tunectl-monitor.service", "tunectl-preflight.service", "tunectl-report.service", "tunectl-preflight.timer")
PLACE = "/var/lib/tunectl/preflight"
TEXTFILE = "/var/lib/node/tunectl-preflight.prom"
FOLDER = '[report]\nfolder = "/mnt/fleet/preflight"\nmount = "/mnt/fleet"\n'
COLLECTED = f'[report]\nurl = "http://127.0.0.1:8088/preflight"\ntimeout_s = 20.0\ntextfile = "{TEXTFILE}"\n'
BUDGET = "[budget]\n" + "".join(f"{key} = {value}\n" for key, value in EMULATED_BUDGET.items())
DOCUMENT = '{"schema": "tunectl.preflight/1"}'
READS_CLOCK = "from tunectl.host.adjtimex import read_kernel_clock as read; print('the kernel says', read())"
COLLECTOR = """
import http.server
class Collector(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        with open("/run/collected", "ab") as file:
            file.write(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.end_headers()
http.server.HTTPServer(("127.0.0.1", 8088), Collector).serve_forever()
"""
# Each thread of the units, and the CPU that it was last on; the probe is there to run on an isolated one.
WATCH_THE_CPUS = """
import glob, time
seen = set()
while True:
    for path in glob.glob("/sys/fs/cgroup/system.slice/tunectl-*.service/cgroup.threads"):
        try:
            for tid in open(path).read().split():
                name, _, rest = open(f"/proc/{tid}/stat").read().partition(") ")
                seen.add((name.partition("(")[2], rest.split()[36]))
        except OSError:
            continue
    open("/run/cpus.new", "w").write("\\n".join(" ".join(one) for one in sorted(seen)))
    __import__("os").rename("/run/cpus.new", "/run/cpus")
    time.sleep(0.2)
"""


def exposure(lab: Lab, unit: str) -> float:
    """What `systemd-analyze security` makes of it: 0 is nothing."""
    said = lab.run(f"systemd-analyze security --no-pager {unit} | grep 'Overall exposure'").out
    return float(said.rpartition(": ")[2].split()[0])


def install(lab: Lab, at: str, report: str) -> None:
    """As an operator does; and a call that a unit's filter refuses ends its process, so that none stays unseen."""
    lab.write("/etc/tunectl/host.toml", HOST_FILE + BUDGET + report)
    lab.run(f"mkdir -p {TEXTFILE.rpartition('/')[0]} /etc/systemd/system/tunectl-preflight.timer.d")
    lab.write("/etc/systemd/system/tunectl-preflight.timer.d/now.conf", "[Timer]\nRandomizedDelaySec=0\n")
    for unit in UNITS[:3]:
        lab.run(f"mkdir -p /etc/systemd/system/{unit}.d")
        lab.write(f"/etc/systemd/system/{unit}.d/kill.conf", "[Service]\nSystemCallErrorNumber=kill\n")
    assert tunectl(lab, f"service install preflight --at '{at}' -q").code == 0
    lab.run("systemctl enable --now tunectl-preflight.timer")


def documents(lab: Lab) -> dict[str, Any]:
    """What the host keeps, by name."""
    names = lab.run(f"cd {PLACE} && ls *.json").out.split()
    return {name: json.loads(lab.get(f"{PLACE}/{name}")) for name in names}


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


@pytest.mark.long
def test_the_timer_fires_and_a_collector_comes_back(tuned: Lab) -> None:
    tuned.write("/run/cpus.py", WATCH_THE_CPUS)
    tuned.run("setsid taskset -c 1 python3 /run/cpus.py >/dev/null 2>&1 </dev/null &")
    assert tunectl(tuned, "service install monitor -q").code == 0
    tuned.run("mkdir -p /etc/systemd/system/tunectl-monitor.service.d")
    clock = f'[Service]\nExecStartPre=/opt/tunectl/bin/python3 -I -c "{READS_CLOCK}"\n'
    tuned.write("/etc/systemd/system/tunectl-monitor.service.d/clock.conf", clock)
    soon = tuned.run("date -d '+3 minutes' '+%F %H:%M'").out.strip()
    install(tuned, soon, COLLECTED)
    tuned.run("systemctl start tunectl-monitor", timeout=300)
    tuned.wait_for(f"ls {PLACE}/*.waiting.json", 900)
    ((name, document),) = documents(tuned).items()
    assert soon.partition(" ")[0].replace("-", "") == name[:8]
    assert document["notes"] == []
    (clock_said,) = [one for one in document["check"]["findings"] if one["target"] == "check.clock_sync"]
    assert "the kernel's own view is not shown" not in clock_said["reason"], "adjtimex is not refused"
    assert "the kernel says KernelClock(" in tuned.run("journalctl -q -u tunectl-monitor -o cat").out
    assert 'tunectl_report_timestamp_seconds{report="preflight"}' in tuned.read(TEXTFILE)

    tuned.wait_for("journalctl -q -u tunectl-report -o cat | grep -q 'Connection refused; waiting: 1 document'", 120)
    tuned.write("/run/collector.py", COLLECTOR)
    tuned.run("setsid taskset -c 1 python3 /run/collector.py >/dev/null 2>&1 </dev/null &")
    tuned.wait_for("! systemctl is-active -q tunectl-report", 400)
    assert tuned.run("cat /run/collected").raw == tuned.get(f"{PLACE}/{name.partition('.')[0]}.json")
    results = {unit: tuned.run(f"systemctl show -p Result --value {unit}").out.strip() for unit in UNITS[:3]}
    assert set(results.values()) <= {"success", "exit-code"}, results  # the verdict may be UNKNOWN, but none was killed
    on = {tuple(line.rsplit(" ", 1)) for line in tuned.read("/run/cpus").splitlines()}
    assert {cpu for program, cpu in on if program != "tunectl-probe"} <= {"0", "1"}, on
    assert {cpu for program, cpu in on if program == "tunectl-probe"} & {"2", "3"}, on


@pytest.mark.long
def test_what_was_missed_while_the_power_was_off_is_made_up_for_and_said(tuned: Lab) -> None:
    install(tuned, "*-*-* 07:45", "")
    tuned.run("systemctl stop tunectl-preflight.timer tunectl-preflight.service")
    past = tuned.run("date -u -d '-2 days' +%Y%m%dT050000Z").out.strip()
    tuned.run(f"mkdir -p {PLACE} && rm -f {PLACE}/*")
    tuned.write(f"{PLACE}/{past}.json", DOCUMENT)
    tuned.run("touch -d '-2 days' /var/lib/systemd/timers/stamp-tunectl-preflight.timer && sync")
    tuned.kill()
    tuned.vm.power_on()  # boot() would wait for the preflight, too, which is a part of this boot's jobs
    fresh.connect(tuned.vm).wait(fresh.BOOT_TIMEOUT, tuned.vm.alive)
    tuned.wait_for(f"test $(ls {PLACE}/*Z.json | wc -l) = 2", 1500)
    (_, document) = sorted(documents(tuned).items())[-1]
    assert document["notes"][0].startswith("missed runs of the timer: ")
