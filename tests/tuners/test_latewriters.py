"""Cron jobs, rc.local, services and timers that will write what is asked for here; and what only looks like one."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.trees import write
from tunectl.host.cpusets import read_scope_facts
from tunectl.host.sysroot import Sysroot
from tunectl.tuners.conflicts import objection
from tunectl.tuners.find import read_tuners
from tunectl.tuners.shellwrites import writes_of

OURS: dict[str, Any] = {
    "cpufreq.governor": "performance",
    "cpufreq.boost": True,
    "cpufreq.energy_perf_bias": 0,
    "cpuidle.max_latency_us": 1,
    "mm.ksm": "stopped",
    "mm.swap": "off",
    "mm.swappiness": 1,
    "mm.thp_enabled": "never",
    "kernel.nmi_watchdog": False,
    "irq.affinity": frozenset({0, 1}),
    "net.adaptive_rx": False,
    "net.rx_ring": 4096,
}
MM = "/sys/kernel/mm/transparent_hugepage"
THP = f"{MM}/enabled"
GOVERNOR = "/sys/devices/system/cpu/cpu3/cpufreq/scaling_governor"
SYSTEM = "etc/systemd/system"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f"echo always > {THP}", [(1, THP, "always")]),
        (f"\necho -n 'always' >{THP}", [(2, THP, "always")]),
        (f"printf '%s\\n' always | sudo tee {THP} >/dev/null", [(1, THP, "always")]),
        (f"test -f {THP} && echo always > {THP} || true", [(1, THP, "always")]),
        (f"if [ -w {THP} ]; then echo always > {THP}; fi", [(1, THP, "always")]),
        (f"x=always\nf={THP}\necho $x > \"$f\"", [(3, THP, "always")]),
        (f"echo $(cat /etc/thp) > {THP}", [(1, THP, "")]),
        (f"/bin/sh -c 'echo always > {THP}'", [(1, THP, "always")]),
        (f"bash -lc \"nice -n 5 dd if=/tmp/x of={THP}\"", [(1, THP, "")]),
        (
            "for c in /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor; do\n  echo powersave > $c\ndone",
            [(2, "/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor", "powersave")],
        ),
        (
            "for c in 2 3; do echo powersave > /sys/devices/system/cpu/cpu$c/cpufreq/scaling_governor; done",
            [(1, f"/sys/devices/system/cpu/cpu{n}/cpufreq/scaling_governor", "powersave") for n in (2, 3)],
        ),
        (
            "CPUS='2 3'\nfor c in $CPUS; do\n"
            "echo powersave > /sys/devices/system/cpu/cpu$c/cpufreq/scaling_governor; done",
            [(3, f"/sys/devices/system/cpu/cpu{n}/cpufreq/scaling_governor", "powersave") for n in (2, 3)],
        ),
        ("for n in a b; do echo 1 > /sys/$n/$n; done", [(1, f"/sys/{n}/{n}", "1") for n in "ab"]),
        ("n=1; nn=2; echo $n > /sys/$nn/$n", [(1, "/sys/2/1", "1")]),
        ("x86_energy_perf_policy -a 6", [(1, "x86_energy_perf_policy", "6")]),
        ("swapon -p 5 /dev/sdb", [(1, "swapon -p 5 /dev/sdb", "on")]),
        ("cpupower frequency-set -u " + "9" * 400, [(1, "cpupower frequency-set -u", "")]),
        (f"echo \\\n always > {THP}", [(1, THP, "always")]),
        (f"echo alw\\\nays > {THP}", [(1, THP, "always")]),
        (f"# a comment is not continued \\\necho always > {THP}", [(2, THP, "always")]),
        ("sysctl -q -w vm.swappiness=60", [(1, "vm.swappiness", "60")]),
        ("cpupower -c all frequency-set -g powersave", [(1, "cpupower frequency-set -g", "powersave")]),
        ("cpupower frequency-set -u 2.5GHz", [(1, "cpupower frequency-set -u", "2500000")]),
        ("cpufreq-set -c 2 --governor=powersave", [(1, "cpufreq-set --governor", "powersave")]),
        ("tuned-adm profile balanced", [(1, "tuned-adm profile balanced", "")]),
        ("x86_energy_perf_policy --all normal", [(1, "x86_energy_perf_policy", "6")]),
        ("swapon -a", [(1, "swapon -a", "on")]),
        ("ethtool -C eth0 adaptive-rx on rx-usecs 50",
         [(1, "ethtool -C eth0 adaptive-rx", "1"), (1, "ethtool -C eth0 rx-usecs", "50")]),
        # from the directory that the script went to
        (f"cd {MM}; echo always > enabled", [(1, THP, "always")]),
        (f"cd {MM} || exit 1\necho always | tee -a enabled", [(2, THP, "always")]),
        (f"cd {MM}/../ksm && dd if=/tmp/x of=run", [(1, "/sys/kernel/mm/ksm/run", "")]),
        (f"D={MM}\nif cd \"$D\"; then echo always > ./enabled; fi", [(2, THP, "always")]),
        ("cd /proc/sys\ncd vm\necho 60 > swappiness", [(3, "/proc/sys/vm/swappiness", "60")]),
        (
            "cd /sys/devices/system/cpu; for c in cpu2 cpu3; do echo powersave > $c/cpufreq/scaling_governor; done",
            [(1, f"/sys/devices/system/cpu/cpu{n}/cpufreq/scaling_governor", "powersave") for n in (2, 3)],
        ),
        # by variables that the script sets
        (f"export V={MM} W=always\necho ${{W}} > ${{V}}/enabled", [(2, THP, "always")]),
        (f"V=always F={THP}; printf \"${{V}}\\n\" >\"${{F}}\"", [(1, THP, "always")]),
        (f"local n=5; echo \"${{n}}00\" > {THP}", [(1, THP, "500")]),
        (f"echo ${{MODE:-always}} > ${{FILE:={THP}}}", [(1, THP, "always")]),
        (f"MODE=never\necho ${{MODE:-always}} > {THP}", [(2, THP, "never")]),
        (f"MODE=$1\necho $MODE > {THP}", [(2, THP, "")]),
        # by dd, and from a text that stands in the script
        (f"echo always | sudo dd of={THP} status=none", [(1, THP, "always")]),
        (f"f={THP}; dd of=$f <<< always", [(1, THP, "always")]),
        (f"cat > {THP} <<END\nalways\nEND\necho never > {THP}", [(1, THP, "always"), (4, THP, "never")]),
        (f"sudo tee {THP} <<'END' >/dev/null\nalways\nEND", [(1, THP, "always")]),
        (f"bash -s <<-END\n\techo always > {THP}\n\tEND\nswapon -a", [(1, THP, "always"), (4, "swapon -a", "on")]),
        # by a file of sysctls
        ("sysctl -p /etc/x.conf", [(1, "sysctl -p /etc/x.conf", "")]),
        ("sysctl -q -p/etc/x.conf /etc/y.conf",
         [(1, "sysctl -p /etc/x.conf", ""), (1, "sysctl -p /etc/y.conf", "")]),
        ("sysctl --load=/etc/x.conf", [(1, "sysctl -p /etc/x.conf", "")]),
        ("sysctl -ep", [(1, "sysctl -p /etc/sysctl.conf", "")]),
        ("sysctl --system", [(1, "sysctl --system", "")]),
        # nothing of these writes
        (f"cd {MM}; echo always > /tmp/enabled", []),
        (f"cd {MM}; cd -; echo always > enabled", []),
        (f"cd {MM}; cd \"$HOME\"; echo always > enabled", []),
        (f"(cd {MM}; cat enabled); echo always > enabled", []),
        (f"(cd {MM} && cat enabled);echo always > enabled", []),
        (f"cd /tmp; cat {MM}/enabled | grep always > enabled", []),
        (f"cat > /usr/local/bin/x <<END\n#!/bin/sh\necho always > {THP}\nEND\ntrue", []),
        (f"ssh other <<END\necho always > {THP}\nEND", []),
        (f"x=$((1<<n)); echo $x > /tmp/enabled; : {THP}", []),
        ("sysctl -p -", []),
        ("sysctl -n vm.swappiness", []),
        (f"cat {THP}", []),
        (f"grep -q always < {THP} > /tmp/seen", []),
        (f"# echo always > {THP}", []),
        (f"echo 'echo always > {THP}'", []),
        ("sysctl vm.swappiness", []),
        ("cpupower frequency-info", []),
        ("swapon --show", []),
        ("swapon --noheadings --show=NAME", []),
        ("swapon --bytes", []),
        ("tuned-adm profile", []),
        ("x86_energy_perf_policy", []),
        ("ethtool -c eth0", []),
        ("tuned-adm active", []),
        ("echo 'never closed > x", []),
    ],
)  # fmt: skip
def test_what_a_script_writes(text: str, found: list[tuple[int, str, str]]) -> None:
    assert [(one.line, one.key, one.value) for one in writes_of(text)] == found


MAY_BE_RUN = [
    (f"if [ -e /x ]; then\n  exit 0\nfi\necho always > {THP}", [(4, THP, "always")]),
    (f"[ -e /x ] || exit 0\necho always > {THP}", [(2, THP, "always")]),
    (f"[ -e /x ] ||\nexit 0\necho always > {THP}", [(3, THP, "always")]),
    (f"case $1 in\nstop) exit 0 ;;\nesac\necho always > {THP}", [(4, THP, "always")]),
    (f"case $1 in\nstop)\n  exit 0\n  ;;\nesac\necho always > {THP}", [(6, THP, "always")]),
    (f"(exit 0)\n{{ true; }}; exec >/tmp/log 2>&1\necho always > {THP}", [(3, THP, "always")]),
    (f"done() {{ exit 0; }}\necho always > {THP}\nexit 0", [(2, THP, "always")]),
    (f"set_it() {{\n  echo always > {THP}\n}}\nset_it", [(2, THP, "always")]),
    (f"function set_it {{\n  echo always > {THP}\n}}\n[ -e /x ] && set_it", [(2, THP, "always")]),
    (f"a()\n{{\n  echo always > {THP}\n}}\nb () {{ a; }}\ntrap 'b; exit' EXIT", [(3, THP, "always")]),
    (f"start() {{ echo always > {THP}; }}\nstop() {{ true; }}\n\"$1\"", [(1, THP, "always")]),
    (f"start() {{ echo always > {THP}; }}\ncase $1 in start) start;; esac", [(1, THP, "always")]),
    (f"exec /bin/sh -c 'echo always > {THP}'", [(1, THP, "always")]),
]  # fmt: skip
NEVER_RUN = [  # and the nearest that is run
    (f"exit 0\necho always > {THP}", f"true\necho always > {THP}"),
    (f"true; exit; echo always > {THP}", f"true; (exit); echo always > {THP}"),
    (
        f"if true; then\n  true\nfi\nexit 0\nfor x in 1; do echo always > {THP}; done",
        f"if false; then\n  exit 0\nfi\nfor x in 1; do echo always > {THP}; done",
    ),
    (f"exec /opt/engine --cpu 3\necho always > {THP}", f"exec 2>&1\necho always > {THP}"),
    (
        f"set_it() {{\n  if true; then echo always > {THP}; fi\n}}\nother() {{ true; }}\nother",
        f"set_it() {{\n  if true; then echo always > {THP}; fi\n}}\nother() {{ set_it; }}\nother",
    ),
    (f"a() {{ echo always > {THP}; }}\nb() {{ a; }}\ntrue", f"a() {{ echo always > {THP}; }}\nb() {{ a; }}\nb"),
    (f"/bin/sh -c 'exit 0; echo always > {THP}'", f"/bin/sh -c 'true || exit 0; echo always > {THP}'"),
]


@pytest.mark.parametrize(("text", "found"), MAY_BE_RUN)
def test_a_line_that_may_be_run_counts(text: str, found: list[tuple[int, str, str]]) -> None:
    assert [(one.line, one.key, one.value) for one in writes_of(text)] == found


@pytest.mark.parametrize(("text", "nearest"), NEVER_RUN)
def test_a_line_that_is_never_run_writes_nothing_as_bash_says_too(tmp_path: Path, text: str, nearest: str) -> None:
    written = tmp_path / "enabled"
    for script, is_run in ((text, False), (nearest, True)):
        subprocess.run(["bash", "-c", script.replace(THP, str(written))], capture_output=True)
        assert (written.exists(), bool(list(writes_of(script)))) == (is_run, is_run)


@pytest.mark.parametrize(
    "text",
    [
        "A=xxxxxxxx\n" + "A=$A$A\n" * 60 + "echo $A > /sys/$A",
        f"for n in {' '.join(map(str, range(64)))}; do\nfor m in {' '.join(map(str, range(64)))}; do\n"
        + "".join(f"v{i}=$n$m\n" for i in range(8))
        + "echo 1 > /sys/$v0/$v1/$v2/$v3/$v4/$v5/$v6/$v7\ndone; done",
    ],
    ids=["a word that doubles", "a product of lists"],
)
def test_no_script_takes_for_ever(text: str) -> None:
    assert len(list(writes_of(text))) <= 400


def program(path: str, text: str, mode: int = 0o755) -> Any:
    def act(root: Path) -> None:
        write(root, path, text)
        (root / path).chmod(mode)

    return act


def unit(name: str, text: str, target: str = "multi-user.target") -> Any:
    def act(root: Path) -> None:
        write(root, f"{SYSTEM}/{name}", text)
        wants = root / SYSTEM / f"{target}.wants"
        wants.mkdir(parents=True, exist_ok=True)
        (wants / name).symlink_to(f"/{SYSTEM}/{name}")

    return act


def instance(value: str) -> Any:
    """tune@VALUE.service, enabled; its template writes the instance's name."""
    text = f"[Service]\nType=oneshot\nExecStart=/bin/sh -c 'echo %i > {GOVERNOR}'\n"

    def act(root: Path) -> None:
        program(f"{SYSTEM}/tune@.service", text)(root)
        wants = root / SYSTEM / "multi-user.target.wants"
        wants.mkdir(parents=True, exist_ok=True)
        (wants / f"tune@{value}.service").symlink_to(f"/{SYSTEM}/tune@.service")

    return act


ZRAM = "/etc/systemd/zram-generator.conf"
GENERATOR = "usr/lib/systemd/system-generators/zram-generator"


def zram(text: str, path: str = ZRAM.lstrip("/"), generator: str = GENERATOR) -> Any:
    """zram-generator, with this configuration."""
    return both(program(generator, "\0"), program(path, text))


def both(*acts: Any) -> Any:
    def act(root: Path) -> None:
        for one in acts:
            one(root)

    return act


def against(root: Path, act: Any) -> dict[str, tuple[str, str]]:
    """{row of check.other_tuners: (reason, fix)}."""
    for name in ("present", "online"):
        write(root, f"sys/devices/system/cpu/{name}", "0-3\n")
    write(root, "usr/lib/systemd/system/cron.service", "[Service]\nExecStart=/usr/sbin/cron -f\n")
    write(root, "etc/debian_version", "12.5\n")
    write(root, f"{SYSTEM}/tunectl-apply.service", "[Unit]\nAfter=early.service\n[Service]\nExecStart=/x apply\n")
    act(root)
    host = Sysroot(str(root))
    facts = read_scope_facts(host)
    found = {one.name: objection(one, OURS, frozenset({2, 3}), facts) for one in read_tuners(host)}
    return {name: (one.reason, str(one.fix)) for name, one in found.items() if one}


SET = f"echo powersave > {GOVERNOR}"
SERVICE = f"[Service]\nType=oneshot\nExecStart=/bin/sh -c '{SET}'\n"
SCRIPT = program("usr/local/bin/save", f"#!/bin/sh\nset -e\n{SET}\n")
PASSWD = program("etc/passwd", "root:x:0:0::/root:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\ntoor:x:0:0::/:/bin/sh\n")


def service_with(text: str, mark: str = "") -> Any:
    """late.service with more in its section, and a mark before its command."""
    return both(PASSWD, unit("late.service", f"{SERVICE.replace('ExecStart=', f'ExecStart={mark}')}{text}\n"))


@pytest.mark.parametrize(
    ("act", "row", "place", "fix"),
    [
        (program("etc/cron.d/save", f"SHELL=/bin/sh\n@reboot root {SET}\n"), "cron", "/etc/cron.d/save:2", "take /etc"),
        (program("etc/crontab", f"*/5 * * * * root sleep 3; {SET}\n"), "cron", "/etc/crontab:1", "take /etc/cron"),
        (program("var/spool/cron/crontabs/root", f"@reboot {SET}\n"), "cron", "/root:1", "take /var"),
        (both(PASSWD, program("var/spool/cron/toor", f"@reboot {SET}\n")), "cron", "/toor:1", "take /var"),
        (both(PASSWD, program("etc/cron.d/save", f"@reboot toor {SET}\n")), "cron", "/cron.d/save:1", "take /etc"),
        (service_with("User=root\nDynamicUser=no"), "services", "late.service:3", "sudo systemctl disable"),
        (service_with("User=toor"), "services", "late.service:3", "sudo systemctl disable"),
        (service_with("User=nobody", "+"), "services", "late.service:3", "sudo systemctl disable"),
        (service_with("User=nobody", "-!!"), "services", "late.service:3", "sudo systemctl disable"),
        (
            service_with("User=nobody\nAmbientCapabilities=CAP_DAC_OVERRIDE"),
            "services", "late.service:3", "sudo systemctl disable",
        ),
        (program("etc/cron.hourly/save", f"#!/bin/sh\n{SET}\n"), "cron", "/cron.hourly/save:2", "take /etc"),
        (both(SCRIPT, program("etc/cron.d/x", "@daily root /usr/local/bin/save\n")), "cron", "save:3", "take /usr"),
        (program("etc/cron.d/x", "@daily root sysctl -w vm.swappiness=60\n"), "cron", "vm.swappiness = 60", "take"),
        (program("etc/cron.d/x", "@daily root echo 8 > /proc/irq/33/smp_affinity\n"), "cron", "= 3,", "take /etc"),
        (program("etc/rc.local", f"#!/bin/sh -e\n{SET}\nexit 0\n"), "rc.local", "/etc/rc.local:2", "take /etc"),
        (
            program("etc/rc.local", "#!/bin/sh\ncd /proc/sys/vm\necho 60 > swappiness\n"),
            "rc.local", "/etc/rc.local:3", "take /etc/rc.local:3 out",
        ),
        (
            both(program("etc/site.conf", "kernel.panic = 9\nvm/swappiness = 60\n"),
                 program("etc/rc.local", "#!/bin/sh\nsysctl -q -p /etc/site.conf\n")),
            "rc.local", "/etc/site.conf:2 may write vm.swappiness = 60", "take /etc/site.conf:2 out, or say vm.swap",
        ),
        (
            both(program("etc/sysctl.conf", "vm.swappi* = 60\n"),
                 unit("x.service", "[Service]\nExecStart=sysctl -p\n")),
            "services", "/etc/sysctl.conf:1", "take /etc/sysctl.conf:1 out",
        ),
        (
            unit("x.service", f"[Service]\nEnvironment=GOV=powersave F={GOVERNOR}\nExecStart=/bin/sh -c "
                 "'for g in $$GOV; do echo $$g > ${F}; done'\n"),
            "services", "= powersave", "sudo systemctl disable --now x.service",
        ),
        (zram("[zram0]\nzram-size = ram / 2\n"), "zram-generator", f"{ZRAM}:1", "sudo systemctl mask dev-zram0.swap"),
        (zram("# bare\n[zram1]\n"), "zram-generator", f"{ZRAM}:2", "sudo systemctl mask dev-zram1.swap"),
        (
            zram("[zram0]\n", "usr/lib/systemd/zram-generator.conf.d/10-vendor.conf"), "zram-generator",
            "10-vendor.conf:1 will write swapon /dev/zram0 = on", "sudo systemctl mask",
        ),
        (unit("late.service", SERVICE), "services", "late.service:3", "sudo systemctl disable --now late.service"),
        (instance("powersave"), "services", "= powersave", "sudo systemctl disable --now tune@powersave.service"),
        (
            both(SCRIPT, unit("late.service", "[Service]\nExecStartPre=-/usr/local/bin/save\nExecStart=/bin/true\n")),
            "services", "/usr/local/bin/save:3", "take /usr/local/bin/save:3 out",
        ),
        (
            both(unit("late.timer", "[Timer]\n", "timers.target"), program(f"{SYSTEM}/late.service", SERVICE)),
            "services", "late.service:3", "sudo systemctl disable --now late.timer",
        ),
        (
            both(
                unit("x.timer", "[Timer]\nUnit=other.service\n", "timers.target"),
                program(f"{SYSTEM}/other.service", "[Service]\nExecStart=/sbin/tuned-adm profile balanced\n"),
            ),
            "services", "tuned-adm profile balanced", "sudo systemctl disable --now x.timer",
        ),
        (
            both(
                unit("late.service", "[Service]\nExecStart=/opt/x.py\n"),
                program("opt/x.py", f"#!/usr/bin/python3\nopen('{THP}', 'w').write('always')\n"),
            ),
            "services", "/opt/x.py:2", "take /opt/x.py:2 out",
        ),
    ],
)  # fmt: skip
def test_who_will_write_is_named_with_file_and_line(tmp_path: Path, act: Any, row: str, place: str, fix: str) -> None:
    found = against(tmp_path, act)
    assert list(found) == [row]
    assert place in found[row][0]
    assert f"{'will' if row == 'zram-generator' else 'may'} write" in found[row][0]
    assert found[row][1].startswith(fix)


def test_swap_in_compressed_memory_is_over_once_its_unit_is_masked(tmp_path: Path) -> None:
    assert list(against(tmp_path, zram("[zram0]\n"))) == ["zram-generator"]
    masked = both(zram("[zram0]\n"), lambda root: (root / SYSTEM / "dev-zram0.swap").symlink_to("/dev/null"))
    assert against(tmp_path, masked) == {}


@pytest.mark.parametrize(
    ("limit", "rows"), [("1000", []), ("1999", []), ("2000", ["zram-generator"]), ("none", ["zram-generator"])]
)
def test_swap_in_compressed_memory_is_for_hosts_that_have_no_more_memory(
    tmp_path: Path, limit: str, rows: list[str]
) -> None:
    write(tmp_path, "proc/meminfo", "MemTotal:        2048000 kB\n")
    assert list(against(tmp_path, zram(f"[zram0]\nhost-memory-limit = {limit}\n"))) == rows


SSH = "usr/lib/systemd/system/ssh.service"
LOGIN = both(
    program(SSH, "[Service]\nExecStartPre=/usr/sbin/sshd -t\nExecStart=/usr/sbin/sshd -D\n"),
    lambda root: (root / SYSTEM / "multi-user.target.wants").mkdir(parents=True),
    lambda root: (root / SYSTEM / "multi-user.target.wants/ssh.service").symlink_to(f"/{SSH}"),
)
TWEAK = "/sbin/sysctl -w vm.swappiness=60"
AGAIN = "then sudo systemctl daemon-reload"


def added(text: str) -> Any:
    return both(LOGIN, program(f"{SYSTEM}/ssh.service.d/tweak.conf", f"[Service]\n{text}"))


@pytest.mark.parametrize(
    ("act", "fix"),
    [
        # a line that the service can do without
        (added(f"ExecStartPost={TWEAK}\n"), f"take /{SYSTEM}/ssh.service.d/tweak.conf:2 out, {AGAIN}"),
        (unit("a.service", f"[Service]\nExecStartPost={TWEAK}\nExecStart=/opt/a\n"), f"a.service:2 out, {AGAIN}"),
        (
            unit("a.service", f"[Service]\nType=oneshot\nExecStart=/opt/a\nExecStart={TWEAK}\n"),
            f"a.service:4 out, {AGAIN}",
        ),
        # the line that starts it
        (added(f"ExecStart=\nExecStart=/bin/sh -c '{TWEAK}; exec /usr/sbin/sshd -D'\n"), "decide what /etc"),
        (unit("a.service", f"[Service]\nExecStart=/bin/sh -c '{TWEAK} && /opt/a'\n"), "a.service:2 shall do instead"),
        (unit("a.service", "[Service]\nExecStart=/sbin/sysctl vm.swappiness=60 net.core.somaxconn=1\n"), "decide"),
        (unit("a.service", f"[Service]\nExecStart={TWEAK}\nExecStop=/opt/a\n"), "decide what /etc"),
        # a service that does nothing else
        (
            unit("a.service", f"[Service]\nExecStart=/bin/sh -c 'for x in 2 3; do {TWEAK}; done'\n"),
            "sudo systemctl disable --now a.service",
        ),
        (unit("a.service", f"[Service]\nExecStart=/bin/sh -c '[ -e /x ] && {TWEAK}'\n"), "disable --now a.service"),
    ],
)
def test_only_a_service_that_does_nothing_else_is_to_be_disabled(tmp_path: Path, act: Any, fix: str) -> None:
    found = against(tmp_path, act)["services"][1]
    assert fix in found
    assert ("disable" in found) is ("disable" in fix)


def test_what_two_lines_should_say_is_said_once(tmp_path: Path) -> None:
    fix = against(tmp_path, program("etc/rc.local", f"#!/bin/sh\n{SET}\n{SET}\n"))["rc.local"][1]
    assert fix.startswith("take /etc/rc.local:2, /etc/rc.local:3 out, or say ")
    assert fix.count(" = ") == 1


@pytest.mark.parametrize("end", ["sys.exit(0)", "raise SystemExit", "exit()", "exit;", "__END__"])
def test_what_stands_behind_the_end_of_another_languages_script_writes_nothing(tmp_path: Path, end: str) -> None:
    def act(text: str) -> Any:
        return program("etc/cron.hourly/x", f"#!/usr/bin/python3\n{text}\nopen('{THP}', 'w').write('always')\n")

    assert "cron.hourly/x:3" in against(tmp_path, act(f"    {end}"))["cron"][0]  # in a condition
    assert against(tmp_path, act(end)) == {}


def test_rc_local_has_one_row_and_its_line_is_the_fix(tmp_path: Path) -> None:
    runs = unit("rc-local.service", "[Service]\nExecStart=/etc/rc.local start\n")
    found = against(tmp_path, both(program("etc/rc.local", f"#!/bin/sh -e\n{SET}\nexit 0\n"), runs))
    assert list(found) == ["rc.local"]
    assert found["rc.local"][1].startswith("take /etc/rc.local:2 out, or say")


@pytest.mark.parametrize(
    "act",
    [
        both(unit("rc-local.service", "[Service]\nExecStart=/etc/rc.local start\n"),
             program("etc/rc.local", f"#!/bin/sh -e\n{SET}\n", 0o644)),
        added("ExecStartPost=/sbin/sysctl vm.swappiness\n"),
        program("etc/cron.d/same", f"@reboot root {SET.replace('powersave', 'performance')}\n"),
        # what another user than root has run writes nothing of ours
        both(PASSWD, program("var/spool/cron/crontabs/nobody", f"@reboot {SET}\n")),
        both(PASSWD, SCRIPT, program("var/spool/cron/nobody", "@reboot /usr/local/bin/save\n")),
        program("var/spool/cron/crontabs/unheard-of", f"@reboot {SET}\n"),
        both(PASSWD, program("etc/cron.d/x", f"@reboot nobody {SET}\n")),
        program("etc/crontab", f"1 * * * * nobody {SET}\n"),
        service_with("User=nobody"),
        service_with("User=65534", "-@"),
        service_with("DynamicUser=yes"),
        both(unit("tune@.service", SERVICE), instance("nobody"),
             program(f"{SYSTEM}/tune@.service", f"{SERVICE}User=%i\n")),
        zram("[zram0]\nzram-size = 0\n"),
        zram("[zram0]\nmount-point = /var/scratch\n"),
        zram("[zram0]\nfs-type = ext4\nmount-point = /x\n"),
        zram("# [zram0]\n[other]\n"),
        both(zram("[zram0]\n", "usr/lib/systemd/zram-generator.conf"), zram("")),
        both(zram("[zram0]\n"), zram("[zram0]\nzram-size = 0\n", "etc/systemd/zram-generator.conf.d/off.conf")),
        program("etc/systemd/zram-generator.conf", "[zram0]\n"),
        both(program("etc/site.conf", "vm.swappiness = 60\nkernel.panic = 9\nvm.swappiness = 1\n"),
             program("etc/rc.local", "#!/bin/sh\nsysctl -p /etc/site.conf\n")),
        unit("x.service", f"[Service]\nEnvironment=GOV=performance\nExecStart=/bin/sh -c 'echo $GOV > {GOVERNOR}'\n"),
        program("etc/cron.d/same", "@reboot root echo 3 > /proc/irq/33/smp_affinity\n"),
        program("etc/cron.d/reads", f"@reboot root cat {GOVERNOR} > /tmp/governor\n"),
        program("etc/cron.d/off.disabled", f"@reboot root {SET}\n"),
        program("etc/cron.d/comment", f"# @reboot root {SET}\n"),
        program("etc/cron.daily/not-a-program", f"#!/bin/sh\n{SET}\n", 0o644),
        program("etc/cron.d/off", "@reboot root echo 1 > /sys/devices/system/cpu/cpu2/cpuidle/state2/disable\n"),
        both(program("etc/cron.d/x", f"@reboot root {SET}\n"),
             lambda root: (root / "usr/lib/systemd/system/cron.service").unlink()),
        program("etc/rc.local", f"#!/bin/sh -e\n{SET}\n", 0o644),
        program(f"{SYSTEM}/not-enabled.service", SERVICE),
        unit("early.service", SERVICE),
        instance("performance"),
        unit("before.service", f"[Unit]\nBefore=tunectl-apply.service\n{SERVICE}"),
        unit("first.service", SERVICE, "sysinit.target"),
        both(unit("masked.service", SERVICE), lambda root: (root / SYSTEM / "masked.service").unlink(),
             lambda root: (root / SYSTEM / "masked.service").symlink_to("/dev/null")),
        unit("reset.service", f"{SERVICE}ExecStart=\nExecStart=/bin/true\n"),
        unit("tunectl-monitor.service", "[Service]\nExecStart=/usr/bin/tunectl monitor\n"),
        both(unit("big.service", "[Service]\nExecStart=/opt/big\n"), program("opt/big", f"\0{SET}\n")),
    ],
)  # fmt: skip
def test_who_will_not_write_or_writes_our_value_is_no_matter(tmp_path: Path, act: Any) -> None:
    assert against(tmp_path, act) == {}
