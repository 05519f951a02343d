"""What runs beside the trading threads: noise, threads, control groups, tracers, heat."""

from ..sabotage import ISOLATED, Kind, Round, Sabotage, agent, declare, each

_TRACING = "/sys/kernel/tracing"
_WHILE = "while True:"
_MSR = ("import os, time", "file = os.open('/dev/cpu/CPU/msr', os.O_RDONLY)", _WHILE, "    os.pread(file, 8, 16)",
        "    time.sleep(0.005)")  # fmt: skip
# The file is open for a moment only. (cpuinfo_cur_freq is in no lab: acpi-cpufreq by ports cannot ask for a clock.)
_BRIEFLY = (
    "import os, time",
    _WHILE,
    "    file = os.open('/dev/cpu/CPU/msr', os.O_RDONLY)",
    "    os.pread(file, 8, 16)",
    "    os.close(file)",
    "    time.sleep(0.005)",
)
# Its first thread spins on CPU 3 without Python's lock; a second one, on the housekeeping CPUs, does the rest.
_ENGINE = (
    "import hashlib, mmap, os, threading, time",
    "def beside():",
    "    os.sched_setaffinity(0, {0, 1})",
    f"    {_WHILE}",
    "        BESIDE",
    "        time.sleep(0.01)",
    "threading.Thread(target=beside, daemon=True).start()",
    "os.sched_setaffinity(0, {3})",
    "hashlib.pbkdf2_hmac('sha256', b'a', b'b', 2 * 10**9)",
)
_DECLARED = declare("threads", 'command = "quoter"', "cpu = 3", "locked_memory = false")


def _for_cpu(lines: tuple[str, ...], cpu: int) -> tuple[str, ...]:
    return tuple(line.replace("CPU/msr", f"{cpu}/msr") for line in lines)


def _engine(beside: str) -> tuple[str, ...]:
    return tuple(line.replace("BESIDE", beside) for line in _ENGINE)


def _thread(name: str, cpus: str) -> str:
    """A kernel thread gets another mask."""
    return f"taskset -pc {cpus} $(pgrep -x {name}) >/dev/null"


def _service(name: str, options: str, program: str = "sleep infinity") -> str:
    """A service of that name, with other options than before, that sleeps."""
    stopped = f"systemctl -q stop {name} 2>/dev/null"
    return f"{stopped}; systemd-run -q --collect --unit={name} {options} {program}; sleep 1"


# The list of its CPUs stands behind them in its status, beyond the first page. systemd knows no group without a name.
_MANY_GROUPS = "import os; os.setgroups(range(2000000001, 2000000601)); os.execlp('tail', 'tail', '-f', '/dev/null')"


def _of_many_groups(cpu: int) -> str:
    return _service("exporter", f"-p CPUAffinity={cpu}", f'python3 -c "{_MANY_GROUPS}"')


_NOISE = Round(
    (
        Sabotage(
            Kind.NOISE,
            "an agent opens a CPU's MSRs for each reading",
            f"modprobe msr; {agent('clock-agent', *_for_cpu(_BRIEFLY, 2))}",
            ("check.ipis[2]",),
            command="check",
            who="a monitoring agent's script that calls rdmsr over and over",
            innocent=f"modprobe msr; {agent('clock-agent', *_for_cpu(_BRIEFLY, 1))}",
            decides="systemctl stop clock-agent",
        ),
    ),
    long=True,
)

_SHOOTDOWNS = Round(
    (
        Sabotage(
            Kind.NOISE,
            "a thread of the engine unmaps memory",
            agent("quoter", *_engine("m = mmap.mmap(-1, 65536); m[0] = 1; m.close()")),
            ("check.ipis[3]",),
            command="check",
            who="the engine's own logger, which maps and unmaps its files",
            innocent=f"{_DECLARED}; {agent('quoter', *_engine('pass'))}",
            says=("quoter",),
            decides="systemctl stop quoter",
        ),
    ),
    long=True,
)

# A timer on the CPU time of the whole engine, 200 times a second.
_TIMER = (
    "import ctypes, signal",
    "signal.signal(signal.SIGALRM, lambda *_: None)",
    "libc, timer = ctypes.CDLL(None), ctypes.c_void_p()",
    "assert not libc.timer_create(2, None, ctypes.byref(timer))",
    "assert not libc.timer_settime(timer, 0, (ctypes.c_long * 4)(0, 5 * 10**6, 0, 5 * 10**6), None)",
)
_SPIN = "sh -c 'while :; do :; done'"


def _spinner(options: str) -> str:
    """A service that spins, with other options than before."""
    stopped = "systemctl -q stop backtest 2>/dev/null"
    return f"{stopped}; systemd-run -q --collect --unit=backtest {options} {_SPIN}; sleep 2"


_SPINNERS = Round(
    (
        Sabotage(
            Kind.NOISE,
            "a CPU timer under a spinning engine",
            agent("quoter", *_TIMER, *_engine("pass")),
            ("check.tick_off[3]",),
            command="check",
            who="a release of the engine with a profiler in it",
            innocent=f"{_DECLARED}; {agent('quoter', *_engine('pass'))}",
            says=("quoter", "POSIX CPU timer"),
            follows=("check.ipis[3]",),  # the tick that comes and goes is kicked by IRQ work
            decides="systemctl stop quoter",
        ),
        Sabotage(
            Kind.THREAD,
            "a real-time spinner on an isolated CPU",
            _spinner("-p CPUSchedulingPolicy=fifo -p CPUSchedulingPriority=50 -p CPUAffinity=2"),
            ("check.movable_threads[2]",),
            command="check",
            who="a colleague who runs a backtest where it is quiet",
            innocent=_spinner("-p CPUSchedulingPolicy=idle -p CPUAffinity=1"),
            says=("thread sh", "chrt -o -p 0"),
        ),
    ),
    long=True,
)

_THREADS = Round(
    (
        Sabotage(
            Kind.THREAD,
            "a sleeping callback thread pinned on an isolated CPU",
            _thread("rcuop/2", "2"),
            ("check.movable_threads[2]",),
            command="check",
            who="a script that pins every thread with a CPU's number in its name to that CPU",
            innocent=_thread("rcuop/2", "1"),
            says=("rcuop/2",),
        ),
        Sabotage(
            Kind.THREAD,
            "a kernel thread that may run on isolated CPUs",
            _thread("kswapd0", "1-3"),
            ("kthread.node_affinity[kswapd0]", *each("check.movable_threads", ISOLATED)),
            command="check",
            who="a script that takes kernel threads off CPU 0",
            innocent=_thread("kswapd0", "0"),
            says=("kswapd",),
        ),
        Sabotage(
            Kind.THREAD,
            "a service pinned by its unit",
            _service("feeder", "-p CPUAffinity=3"),
            ("check.movable_threads[3]",),
            command="check",
            who="a colleague who tests a feed handler beside the engine",
            innocent=_service("feeder", "-p CPUAffinity=1"),
            says=("sleep",),
        ),
        Sabotage(
            Kind.THREAD,
            "a service of a user in hundreds of groups",
            _of_many_groups(2),
            ("check.movable_threads[2]",),
            command="check",
            who="a colleague whose directory service puts everybody into a group for each project",
            innocent=_of_many_groups(1),
            says=("tail",),
        ),
    ),
    long=True,
)

_TWIN = (  # its first thread is no engine, and stays on the housekeeping CPUs
    "import os, pathlib, threading, time",
    "def run():",
    "    os.sched_setaffinity(0, {2})",
    "    pathlib.Path(f'/proc/self/task/{threading.get_native_id()}/comm').write_text('engine')",
    "    time.sleep(10**6)",
    "for _ in range(COUNT):",
    "    threading.Thread(target=run).start()",
)
ONE_ENGINE = ('command = "twin"', 'thread = "engine"', "cpu = 2", "locked_memory = false")
_FIFO = ('policy = "fifo"', "priority = 50")
_TID = "$(grep -lx engine /proc/$(pgrep -x twin)/task/*/comm | cut -d/ -f5)"


def twin(count: int, options: str = "") -> str:
    """A program with so many threads named engine, which sleep on CPU 2."""
    lines = (line.replace("COUNT", str(count)) for line in _TWIN)
    return agent("twin", *lines, options=options)


_TWINS = Round(
    (
        Sabotage(
            Kind.THREAD,
            "two threads have the declared name",
            twin(2),
            ("check.trading_thread[engine]",),
            command="check",
            who="a release of the engine that starts a second worker under the same name",
            innocent=f"{declare('threads', *ONE_ENGINE)}; {twin(1)}",
            decides=twin(1),
        ),
    ),
    long=True,
)

_MISPLACED = Round(
    (
        Sabotage(
            Kind.THREAD,
            "the engine's thread is moved and loses its priority",
            f"taskset -pc 0-2 {_TID} >/dev/null; chrt -o -p 0 {_TID}",
            ("check.trading_thread[engine]",),
            command="check",
            who="a script that gives every thread back to the scheduler",
            innocent=f"{declare('threads', *ONE_ENGINE, *_FIFO)}; "
            + twin(1, "-p CPUSchedulingPolicy=fifo -p CPUSchedulingPriority=50"),
            says=("engine",),
        ),
    ),
    long=True,
)

_IRQ = "$(grep virtio0-input /proc/interrupts | head -1 | cut -d: -f1 | tr -d ' ')"
_ASKER = (  # asks for the gateway's address, over and over; each answer is an interrupt
    "import socket, time",
    "line = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)",
    "line.bind((socket.if_nameindex()[1][1], 0))",
    "mac = line.getsockname()[4]",
    "head = bytes.fromhex('08060001080006040001')",
    r"frame = b'\xff' * 6 + mac + head + mac + bytes((10, 0, 2, 15)) + bytes(6) + bytes((10, 0, 2, 2))",
    _WHILE,
    "    line.send(frame)",
    "    time.sleep(0.1)",
)
_CLOCKS = "/sys/devices/system/clocksource/clocksource0"
_ARRIVING = Round(
    (
        Sabotage(
            Kind.INTERRUPT,
            "the network card interrupts an isolated CPU",
            f"echo 3 > /proc/irq/{_IRQ}/smp_affinity_list",
            ("check.device_interrupts[3]", "irq.affinity[NIC]"),
            command="check",
            who="a network driver's script that spreads the card over all CPUs",
            innocent=f"systemctl stop irqbalance; echo 1 > /proc/irq/{_IRQ}/smp_affinity_list; "
            + agent("asker", *_ASKER),
            follows=("check.movable_threads[3]",),  # where the interrupt has a thread, that goes along
            says=("virtio0-input",),
        ),
        Sabotage(
            Kind.VALUE,
            "another clock by hand",
            f"echo acpi_pm > {_CLOCKS}/current_clocksource",
            ("check.clocksource",),
            command="check",
            who="an old guide for virtual machines",
            innocent=f"echo $(cat {_CLOCKS}/current_clocksource) > {_CLOCKS}/current_clocksource",
            says=("acpi_pm",),
        ),
    ),
    long=True,
)

_ACPI = "$(pgrep '^irq/' | head -1)"  # on a usual PC that of ACPI: a card's follows its interrupt wherever that is put
_INTERRUPT_THREADS = Round(
    (
        Sabotage(
            Kind.THREAD,
            "the thread of an interrupt on an isolated CPU",
            f"taskset -pc 2 {_ACPI} >/dev/null",
            ("check.movable_threads[2]",),
            command="check",
            who="a guide for real-time kernels that gives each interrupt's thread a CPU of its own",
            innocent=f"taskset -pc 1 {_ACPI} >/dev/null",
            says=("irq/",),
            needs="pgrep '^irq/'",
            lacks="no interrupt has a thread here (they have with PREEMPT_RT, or threadirqs)",
        ),
    ),
    long=True,
)

_GROUPS = Round(
    (
        Sabotage(
            Kind.GROUP,
            # With 0-3 its threads may run everywhere, and isolcpus= sees that none is put there.
            "a slice that gets an isolated CPU",
            "systemctl set-property --runtime system.slice AllowedCPUs=2",
            ("check.movable_threads[2]",),
            command="check",
            follows=("check.ipis[*]", "check.tick_off[*]"),
            who="an operator who took the list of the wrong CPUs",
            innocent="systemctl set-property --runtime system.slice AllowedCPUs=0-1",
            says=("system.slice",),
        ),
        Sabotage(
            Kind.GROUP,
            "the slice of logins is given an isolated CPU for good",
            "systemctl set-property user.slice AllowedCPUs=3",
            ("check.movable_threads[3]",),
            command="check",
            who="an operator who wants logins off the CPUs where the gateways run",
            # fewer CPUs than they might have
            innocent=f"{_service('report', '--slice=user.slice')}; systemctl set-property user.slice AllowedCPUs=0",
            says=("user.slice", "system.control"),
        ),
    ),
    long=True,
    alone=True,
)

_RESIDUE = Round(
    (
        Sabotage(
            Kind.RESIDUE,
            "function tracer left on",
            f"echo do_sys_openat2 > {_TRACING}/set_ftrace_filter; echo function > {_TRACING}/current_tracer",
            ("check.tracing",),
            command="check",
            who="the same engineer",
            innocent=f"echo nop > {_TRACING}/current_tracer; echo 64 > {_TRACING}/buffer_size_kb",
            says=("function",),
        ),
        Sabotage(
            Kind.RESIDUE,
            "kprobe left on",
            f"echo 'p:left do_sys_openat2' > {_TRACING}/kprobe_events; echo 1 > {_TRACING}/events/kprobes/left/enable",
            ("check.tracing",),
            command="check",
            who="a debugging script that was killed",
            innocent=f": > {_TRACING}/kprobe_events",
            says=("left",),
        ),
        Sabotage(
            Kind.RESIDUE,
            "function profiler left on",
            f"echo do_sys_openat2 > {_TRACING}/set_ftrace_filter; echo 1 > {_TRACING}/function_profile_enabled",
            ("check.tracing",),
            command="check",
            who="an engineer who counted calls",
            innocent=f"echo 0 > {_TRACING}/function_profile_enabled",
            says=("timed",),
            needs=f"test -e {_TRACING}/function_profile_enabled",
            lacks="this kernel was built without CONFIG_FUNCTION_PROFILER, as Debian's are",
        ),
        Sabotage(
            Kind.RESIDUE,
            "stack tracer left on",
            f"echo do_sys_openat2 > {_TRACING}/stack_trace_filter; sysctl -q kernel.stack_tracer_enabled=1",
            ("check.tracing",),
            command="check",
            who="an engineer who looked for a stack that is too deep",
            innocent="sysctl -q kernel.stack_tracer_enabled=0",
            says=("stack",),
        ),
        Sabotage(
            Kind.RESIDUE,
            "an instance of its own left on",
            f"mkdir -p {_TRACING}/instances/agent; echo 1 > {_TRACING}/instances/agent/events/irq/enable",
            ("check.tracing",),
            command="check",
            who="an agent that was removed without being stopped",
            innocent=f"mkdir -p {_TRACING}/instances/agent",
            says=("agent",),
        ),
    ),
    long=True,
    alone=True,
)

# The lab's other cooling devices, ACPI's, have no state but 0.
_CLAMP = "/sys/class/thermal/cooling_device4"
_COOLING = Round(
    (
        Sabotage(
            Kind.VALUE,
            "intel_powerclamp keeps CPUs idle",
            f"grep -qx intel_powerclamp {_CLAMP}/type && echo 10 > {_CLAMP}/cur_state",
            ("thermal.cooling[cooling_device4]",),
            command="preflight --duration 1",
            who="a thermal daemon that was stopped while it cooled, or a burn-in test's script",
            innocent=f"echo 0 > {_CLAMP}/cur_state",
            says=("intel_powerclamp", "keeps CPUs idle by force"),
        ),
        Sabotage(
            Kind.CONFIG,
            "a limit of the budget is looser than the profile's",
            "sed -i 's/^max_ns = .*/max_ns = 2000000000/' /etc/tunectl/host.toml",
            (),
            command="preflight --duration 1",
            who="an operator whose host was NO-GO on a morning, and who forgot to take it back",
            innocent="printf '%s\n' '' '[budget]' 'max_ns = 40000' >> /etc/tunectl/host.toml",
            notes=("max_ns 2000000000 (profile 50000)",),
        ),
    ),
    long=True,
)

# Alone: when systemd sets up the first cpuset, a kernel before 6.2 forgets what threads had asked for with taskset.
_SERVICE = Round(
    (
        Sabotage(
            Kind.GROUP,
            "a service with AllowedCPUs=",
            _service("batch", "-p AllowedCPUs=3"),
            ("check.movable_threads[3]",),
            command="check",
            who="a colleague who found two idle CPUs for a batch job",
            innocent=_service("batch", "-p AllowedCPUs=0-1"),
            says=("batch.service",),
        ),
    ),
)

IN_CI = (  # played in a round of CI, with rows of other kinds
    Sabotage(
        Kind.NOISE,
        "an agent reads MSRs",
        f"modprobe msr; {agent('turbo-agent', *_for_cpu(_MSR, 3))}",
        ("check.ipis[3]",),
        command="check",
        who="a monitoring agent that shows clocks and power",
        innocent=f"modprobe msr; {agent('turbo-agent', *_for_cpu(_MSR, 0))}",
        says=("turbo-agent", "/dev/cpu/3/msr"),
        needs="modprobe -q msr",
        lacks="this machine has no MSRs",
    ),
    Sabotage(
        Kind.RESIDUE,
        "events left on",
        f"echo 1 > {_TRACING}/events/sched/sched_switch/enable",
        ("check.tracing",),
        command="check",
        who="an engineer who measured, and closed the terminal",
        innocent=f"echo 'prev_pid == 1' > {_TRACING}/events/sched/sched_switch/filter",
        says=("sched_switch",),
    ),
)

ROUNDS = {
    "noise": _NOISE,
    "shootdowns": _SHOOTDOWNS,
    "spinners": _SPINNERS,
    "threads": _THREADS,
    "twins": _TWINS,
    "misplaced": _MISPLACED,
    "arriving": _ARRIVING,
    "interrupt-threads": _INTERRUPT_THREADS,
    "group": _SERVICE,
    "groups": _GROUPS,
    "residue": _RESIDUE,
    "cooling": _COOLING,
}
