"""What the text of a program names of ours: a plain line is a write, any other is named and not followed."""

import pytest

from tunectl.tuners.programs import programs_of, read_program

MM = "/sys/kernel/mm/transparent_hugepage"
THP = f"{MM}/enabled"
CPUS = "/sys/devices/system/cpu"
GOVERNOR = f"{CPUS}/cpu3/cpufreq/scaling_governor"

PLAIN = [
    (f"echo always > {THP}", [(1, THP, "always")]),
    (f"\necho -n 'always' >{THP}", [(2, THP, "always")]),
    (f"printf '%s\\n' always | sudo tee {THP} >/dev/null", [(1, THP, "always")]),
    (f"test -f {THP} && echo always > {THP} || true", [(1, THP, "always")]),
    (f"if [ -w {THP} ]; then echo always > {THP}; fi", [(1, THP, "always")]),
    (f"/bin/sh -c 'echo always > {THP}'", [(1, THP, "always")]),
    (f"echo always | sudo dd of={THP} status=none", [(1, THP, "always")]),
    (f"dd of={THP} <<< always", [(1, THP, "always")]),
    (f"echo \\\n always > {THP}", [(1, THP, "always")]),
    (f"# a comment is not continued \\\necho always > {THP}", [(2, THP, "always")]),
    ("for x in 2 3; do sysctl vm.swappiness=60; done", [(1, "vm.swappiness", "60")]),
    ("x86_energy_perf_policy -a 6", [(1, "x86_energy_perf_policy -a", "6")]),
    ("x86_energy_perf_policy --all normal", [(1, "x86_energy_perf_policy --all", "6")]),
    ("x86_energy_perf_policy performance", [(1, "x86_energy_perf_policy", "0")]),
    ("cpupower idle-set -D 5", [(1, "cpupower idle-set -D", "")]),
    ("swapon -p 5 /dev/sdb", [(1, "swapon -p 5 /dev/sdb", "on")]),
    ("swapon -a", [(1, "swapon -a", "on")]),
    ("cpupower frequency-set -u " + "9" * 400, [(1, "cpupower frequency-set -u", "")]),
    ("sysctl -q -w vm.swappiness=60", [(1, "vm.swappiness", "60")]),
    ("cpupower -c all frequency-set -g powersave", [(1, "cpupower frequency-set -g", "powersave")]),
    ("cpupower frequency-set -u 2.5GHz", [(1, "cpupower frequency-set -u", "2500000")]),
    ("cpufreq-set -c 2 --governor=powersave", [(1, "cpufreq-set --governor", "powersave")]),
    ("tuned-adm profile balanced", [(1, "tuned-adm profile balanced", "")]),
    ("timeout 9 ethtool -C eth0 adaptive-rx on rx-usecs 50",
     [(1, "ethtool -C eth0 adaptive-rx", "1"), (1, "ethtool -C eth0 rx-usecs", "50")]),
    ("sysctl -p /etc/x.conf", [(1, "sysctl -p /etc/x.conf", "")]),
    ("sysctl -q -p/etc/x.conf /etc/y.conf", [(1, "sysctl -p /etc/x.conf", ""), (1, "sysctl -p /etc/y.conf", "")]),
    ("sysctl -ep", [(1, "sysctl -p /etc/sysctl.conf", "")]),
    ("sysctl --system", [(1, "sysctl --system", "")]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "writes"), PLAIN)
def test_a_plain_line_is_a_write(text: str, writes: list[tuple[int, str, str]]) -> None:
    assert [(one.line, one.key, one.value) for one in read_program(text)] == writes
    assert not any(one.named for one in read_program(text))


PYTHON = "#!/usr/bin/python3\n"
NAMED = [
    # variables, loops and directories are the program's own matter
    (f"x=always\nf={THP}\necho $x > \"$f\"", 2, "mm.thp_enabled"),
    (f"echo $(cat /etc/thp) > {THP}", 1, "mm.thp_enabled"),
    (f"cp /etc/thp {THP}", 1, "mm.thp_enabled"),
    (f"cd {MM}; echo always > enabled", 1, "mm.thp_enabled"),
    (f"cd {MM} || exit 1\necho always | tee -a enabled", 1, "mm.thp_enabled"),
    ("cd /proc/sys\ncd vm\necho 60 > swappiness", 1, "mm.swappiness"),
    (f"V={MM} W=always\necho ${{W}} > ${{V}}/enabled", 1, "mm.thp_enabled"),
    (f"for c in {CPUS}/cpu*/cpufreq/scaling_governor; do\n  echo powersave > $c\ndone", 1, "cpufreq.governor"),
    (f"for c in 2 3; do echo powersave > {CPUS}/cpu$c/cpufreq/scaling_governor; done", 1, "cpufreq.governor"),
    (f"echo powersave | tee {CPUS}/${{cpu}}/cpufreq/scaling_governor", 1, "cpufreq.governor"),
    (f"find {CPUS} -name scaling_governor | while read f; do echo powersave > $f; done", 1, "cpufreq.governor"),
    ("ethtool -C $IFACE rx-usecs $N", 1, "net.rx_usecs"),
    ("/sbin/ethtool -K \"$1\" $OPTIONS", 1, "net.gro"),
    ("sysctl -w vm.${name}=1", 1, "mm.swappiness"),
    ("for irq in $(list); do echo 3 > /proc/irq/$irq/smp_affinity_list; done", 1, "irq.affinity"),
    # what may never be run
    (f"exit 0\necho always > {THP}", 2, "mm.thp_enabled"),
    (f"set_it() {{\n  echo always > {THP}\n}}", 2, "mm.thp_enabled"),
    (f"cat > /usr/local/bin/x <<END\necho always > {THP}\nEND", 2, "mm.thp_enabled"),
    (f"echo 'never closed\necho always > {THP}'", 2, "mm.thp_enabled"),
    # programs that place interrupts and threads
    ("tuna --irqs=mlx5* --cpus=2 --move", 1, "irq.affinity"),
    ("/usr/sbin/irqbalance --oneshot", 1, "irq.affinity"),
    ("taskset -pc 3 77", 1, "kthread.affinity"),
    ("/opt/mellanox/set_irq_affinity.sh eth0", 1, "net.queue_irqs"),
    # another language
    (f"{PYTHON}open('{THP}', 'w').write('always')", 2, "mm.thp_enabled"),
    (f"{PYTHON}p = '{THP}'\nopen(p, 'w').write('always')", 2, "mm.thp_enabled"),
    (f"{PYTHON}import subprocess\nsubprocess.run(['ethtool', '-C', card, 'rx-usecs', '50'])", 3, "net.rx_usecs"),
    ("#!/usr/bin/perl\nsystem(\"cpupower frequency-set -g powersave\");", 2, "cpufreq.governor"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line", "knob"), NAMED)
def test_any_other_line_that_names_ours_is_named_and_not_followed(text: str, line: int, knob: str) -> None:
    named = list(read_program(text))
    assert (line, True, True) in [(one.line, one.named, one.knob == knob) for one in named]
    assert all(one.named for one in named)


SILENT = [
    f"cd {MM}; cat enabled",
    f"cat {THP}",
    f"grep -q always < {THP} > /tmp/seen",
    f"v=$(cat {THP}); [ \"$v\" = never ] || exit 1",
    f"# echo always > {THP}",
    f"cd {MM}; echo always > /tmp/enabled",
    "ssh other reboot",
    "sysctl -n vm.swappiness",
    "sysctl vm.swappiness",
    "sysctl -p -",
    "cpupower frequency-info",
    "swapon --show",
    "swapon --noheadings --show=NAME",
    "swapon --bytes",
    "tuned-adm profile",
    "tuned-adm active",
    "x86_energy_perf_policy",
    "ethtool -c eth0",
    "ethtool -i $IFACE",
    "taskset -c 3 /opt/engine",
    "tuna show_threads",
    "systemctl restart irqbalance",
    f"#!/usr/bin/python3\nprint(open('{THP}').read())",
]  # fmt: skip


@pytest.mark.parametrize("text", SILENT)
def test_what_only_reads_or_is_another_programs_argument_is_silent(text: str) -> None:
    assert list(read_program(text)) == []


@pytest.mark.parametrize(
    ("command", "programs"),
    [
        ("/opt/a --fast", ["opt/a"]),
        ("sh -c '/opt/a; nice -n 5 /opt/b'", ["opt/a", "opt/b"]),
        ("python3 -u /opt/a.py", ["opt/a.py"]),
        ("sleep 3 && bash /opt/a.sh", ["opt/a.sh"]),
        ("echo x", []),
    ],
)
def test_the_programs_that_a_command_runs(command: str, programs: list[str]) -> None:
    assert list(programs_of(command)) == programs


def test_no_program_takes_for_ever() -> None:
    assert len(list(read_program("A=xxxx\n" + "A=$A$A\n" * 60 + "echo $A > /sys/$A"))) < 100
