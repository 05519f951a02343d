"""The table of cases: a name, and how its text is made. A new contract is one row, then `--update NAME`."""

import json
import re
import tarfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.cli.places import complaint
from tests.conftest import write_host_file
from tests.golden import adapters
from tests.golden.normalise import normalised
from tests.golden.once import new_paragraphs, short_json
from tests.golden.refused import COMMAND_LINES, HOST_FILES
from tests.golden.variants import variants
from tests.golden.world import CLOUDS, HOSTS, World
from tests.ran import Ran
from tests.tuning.hosts import wish

EXPECTED = Path(__file__).parent / "expected"
Make = Callable[[World], str]
_GATE = ("text", "json", "junit", "nagios", "prometheus")
_SERVERS = [name for name in HOSTS if name not in ("lab4", "tuned4", "runtime4", "bare4", "xeon2s", *CLOUDS)]


def made(name: str, world: World) -> str:
    """The text of a case, as it is in every run."""
    return normalised(CASES[name](world), world.place)


def told(*lines: str) -> Make:
    """These commands, one after the other, and what each said."""
    return lambda world: "\n".join(world.told(line) for line in lines)


def told_once(command: str, *hosts: str) -> Make:
    """What this command says of each host, and no paragraph twice."""
    return lambda world: new_paragraphs(world.told(command.replace("HOST", host)) for host in hosts)


def changing(host: str, *lines: str, prepare: Callable[[Path], object] = lambda root: None) -> Make:
    """The same on a host of one's own, `own` in `lines`; and, after each, the files that it changed."""

    def make(world: World) -> str:
        root = world.host(host, "own")
        prepare(root)
        return world.told_with_changes(root, *lines)

    return make


def handed(make: Callable[[Path], str]) -> Make:
    """A text that needs no more than a place."""
    return lambda world: make(world.place)


# ---- what is made by hand


def monitor_once(host: str) -> Make:
    """The document of two looks."""

    def make(world: World) -> str:
        done = world.run(f"monitor --once --interval 0.05 --root {host} --format json")
        body = done.json
        body["own"] = sorted(body["own"])
        audit = next(one for one in body["sources"] if one["name"] == "audit")
        if "worth its cost" in "".join(audit["reasons"]):  # as the machine of the tests has it
            audit.update(fresh=audit["stale"], stale=0, reasons=[])
        return f"exit {done.code}\n{short_json(json.dumps(body), 'reason')}"

    return make


def daemon(world: World) -> str:
    """What fires in two seconds, on stdout and to a hook; ids follow from the time and are left out."""
    root = world.host("tuned4", "own")
    world.run("apply --yes --root own")
    host_file = root / "etc/tunectl/host.toml"
    host_file.write_text(f'{host_file.read_text()}[monitor]\nlog = "none"\ninterval_s = 0.1\n')
    for cpu in range(4):
        (root / f"sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_max_freq").write_text("1200000\n")
    done = world.run("monitor --duration 2 --root own --format json")
    *told, last = map(json.loads, done.out.splitlines())
    alerts = sorted(told, key=lambda one: str(one["subject"]))
    for one in alerts:
        one.update({key: "ID" for key in ("id", "event") if key in one})
    ends = f"then {last['schema']}: {last['verdict']}, {len(last['alerts'])} firing"
    return f"exit {done.code}\n{short_json(json.dumps(alerts))}{ends}\n"


def unconfirmed(world: World) -> str:
    """A change that is confirmed, and one that nobody confirms in time; what is said while each waits."""
    root = world.host("lab4", "own")
    (root / "etc/systemd/system").mkdir(parents=True, exist_ok=True)
    wish(root, {"mm.swappiness": "1", "kernel.stat_interval": "120"}, 'isolated = "2-3"\n')
    swappiness_file, record = root / "proc/sys/vm/swappiness", root / "var/lib/tunectl/trial.json"
    apply = "apply --yes --runtime --confirm-within 10m --root own -q"
    lines = [apply, "apply --yes --runtime --root own", "verify --root own", "confirm --root own", "confirm --root own"]
    said = [world.told(line) for line in lines]
    swappiness_file.write_text("60\n")
    said.append(world.told(apply))
    record.write_text(json.dumps(json.loads(record.read_text()) | {"deadline_s": 0.0}))
    lines = ["confirm --root own", "deadline --root own", "confirm --root own", "restore --root own"]
    return "\n".join([*said, *(world.told(line) for line in lines)])


def reapply(world: World) -> str:
    """The unit that applies again when a NIC appears."""
    root = world.host("lab4", "own")
    world.run("apply --yes --root own")
    return (root / "etc/systemd/system/tunectl-reapply@.service").read_text()


def snapshot(world: World) -> str:
    """What is recorded of a host: the document and the archive's list."""
    text = world.told("snapshot -o snapshot.tar --root lab4 --format json")
    with tarfile.open(world.place / "snapshot.tar") as archive:
        names = Counter(re.sub(r"\d+", "N", f"{one.name}{'/' if one.isdir() else ''}") for one in archive)
    (world.place / "snapshot.tar").unlink()
    return "\n".join([text, *(f"{name} {count}" for name, count in sorted(names.items())), ""])


def fleet(world: World) -> str:
    """A session from its list to its report, and the files that it is kept in."""
    store = world.place / "store"
    store.mkdir()
    text = world.told(
        "fleet open --store store --hosts - --name morning --selection ny4 --root lab4",
        '["tx-01","tx-02","gone","silent"]',
    )
    for name, file in (("tx-01", "go.json"), ("tx-02", "no-go.json")):
        text += world.told(f"fleet record store/morning {name}", (world.place / file).read_text())
    text += world.told("fleet record store/morning gone --unreachable 'No route to host'")
    for fmt in ("text", "json"):
        text += world.told(f"fleet report store/morning --format {fmt} --root lab4")
    text += world.told("fleet report store/morning --save -q --root lab4")
    for words in ("kernel=6.12.0-0", "@- --format json"):
        text += world.told(f"fleet gate store/morning --canary {words} --max-no-go 1% --root lab4", "tx-02\nlost\n")
    for words in ("tx-02", "gone --format json"):
        text += world.told(f"fleet history {words} --store store --root lab4")
    text += world.told("fleet keep --store store --root lab4")
    text += world.told("fleet keep morning --store store --root lab4")
    text += world.told("fleet diff morning morning --store store --root lab4")
    text += world.told("fleet history --knob mm.swappiness --store store --root lab4")
    text += world.told("fleet sql 'SELECT host, max_ns FROM runs ORDER BY host' --store store --root lab4")
    names = sorted(re.sub("-[0-9a-f]{16}", "-DIGEST", str(path.relative_to(store))) for path in store.rglob("*"))
    session, absent = (store / "morning" / name for name in ("session.json", "hosts/gone.json"))
    text += "".join(f"--- {path.name}\n{path.read_text()}" for path in (session, absent))
    for path in sorted(store.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    store.rmdir()
    return "\n".join([text, *names, ""])


def refused_host_files(world: World) -> str:
    """Every host file that cannot be, and the line that says so."""
    text = ""
    for name, content in HOST_FILES.items():
        world.write("bad.toml", content)
        done = world.run("verify --root lab4 --host bad.toml")
        text += f"[{name}] exit {done.code}: tunectl: {complaint(done, 2)}\n"
    return text


def refused_command_lines(world: World) -> str:
    """Every command line that cannot be. What click itself words is left to click: the exit code alone."""
    return "".join(_refused(world, line, by_click) for line, by_click in COMMAND_LINES)


def _refused(world: World, line: str, by_click: bool) -> str:
    done = world.run(line)
    said = complaint(Ran(done.code, "", done.err), done.code)  # Nagios is told on stdout, too
    return f"[{line}] exit {done.code}: tunectl: {'...' if by_click else said}\n"


def broken_journal(root: Path) -> None:
    """A journal whose only line is damaged."""
    path = root / "var/lib/tunectl/journal.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text("garbage\n")


def threads(root: Path) -> None:
    """A unit that is one thread, one with a thread by name, and a process of no unit."""
    kinds = ('name = "feed"\nunit = "feed"', 'unit = "book"\nthread = "rx"', 'name = "cold"\ncommand = "cold"')
    rows = "".join(f"[[threads]]\n{kind}\ncpu = {cpu}\n" for cpu, kind in enumerate(kinds, 1))
    policy = 'policy = "fifo"\npriority = 50\n'
    write_host_file(root, f'profile = "low-latency"\nisolated = "1-3"\n{rows}{policy}')


def swappiness(root: Path) -> None:
    """Somebody has changed it since."""
    (root / "proc/sys/vm/swappiness").write_text("33\n")


# ---- the table


def _read(host: str, command: str, *formats: str) -> Iterator[tuple[str, Make]]:
    for fmt in formats:
        yield f"{command.split()[0]}-{host}-{fmt}", told(f"{command} --root {host} --format {fmt}")


def _rows() -> Iterator[tuple[str, Make]]:
    for host in ("lab4", "xeon2s"):
        yield from _read(host, "show", "text")
        yield from _read(host, "propose", "text", "toml")
    yield from _read("lab4", "show", "json")
    yield from _read("lab4", "propose", "json")
    yield from _read("lab4", "plan", "text", "json")
    yield from _read("xeon2s", "plan", "text")
    yield from _read("lab4", "verify", *_GATE)
    yield from _read("xeon2s", "verify", "nagios", "prometheus")
    yield from _read("lab4", "check --window 0.05", "text", "json")
    yield from _read("lab4", "preflight --window 0.05 --duration 0.1", "text", "json")
    yield from _read("bare4", "preflight --window 0.05 --duration 0.1", "text")
    yield (
        "verify-strict",
        told("verify --strict --root lab4 --format nagios", "check --window 0.05 --strict --root lab4"),
    )
    yield "clouds-show", told_once("show --root HOST", *CLOUDS)
    yield (
        "threads-unit",
        changing("lab4", *(f"threads unit {name} --root own" for name in ("feed", "rx", "cold")), prepare=threads),
    )
    yield "hosts-show", told_once("show --root HOST", *_SERVERS)
    yield "hosts-propose", told_once("propose --root HOST --format toml", *_SERVERS)
    yield "hosts-plan", told_once("plan --root HOST", *_SERVERS)
    yield "hosts-verify", told(*(f"verify --root {host} --format nagios" for host in _SERVERS))
    yield "knobs-json", told("knobs irq --root lab4 --format json")
    yield "knobs-text", told("knobs mm", "knobs mm.ksm")
    yield "knobs-markdown", told("knobs irq --format markdown")
    yield "version", told("--version")
    yield from _changing()
    yield from _monitor()
    yield from _documents()
    yield "options", lambda _: adapters.options()
    yield "ansible-modules", lambda _: adapters.ansible_modules()
    yield "ansible-roles", lambda _: adapters.ansible_roles()
    yield "refused-host-files", refused_host_files
    yield "refused-command-lines", refused_command_lines


def _changing() -> Iterator[tuple[str, Make]]:
    apply, restore = "apply --yes --root own", "restore --root own"
    yield "apply-text", changing("lab4", apply, "verify --root own", f"{restore} --dry-run", restore, restore)
    yield (
        "apply-json",
        told_after("lab4", f"{apply} --format json", f"{restore} --dry-run --format json", f"{restore} --format json"),
    )
    yield "apply-tuned", told_after("tuned4", apply, "verify --root own --format nagios", "plan --root own", apply)
    yield "apply-runtime", told_after("lab4", f"{apply} --runtime", "verify --root own --format nagios", restore)
    yield "apply-runtime-isolation", changing("runtime4", apply, restore)
    yield "apply-xeon2s", changing("xeon2s", apply)
    yield "apply-unconfirmed", unconfirmed
    yield "apply-unasked", told_after("lab4", "apply --root own")
    yield "restore-changed-since", changing_after_apply(swappiness, restore, f"{restore} --force")
    yield (
        "restore-damaged",
        changing(
            "lab4", restore, apply, "verify --root own --format nagios", f"{restore} --salvage", prepare=broken_journal
        ),
    )
    yield "units-reapply", reapply
    for service in adapters.SERVICES:
        lines = [f"service {action} {service} --root own" for action in ("show", "install", "install", "remove")]
        yield f"service-{service}", anywhere(changing("lab4", f"{lines[0]} --format json", *lines[1:]))
        yield f"units-{service}", lambda _, service=service: adapters.units(service)  # type: ignore[misc]


def anywhere(make: Make) -> Make:
    """Without what a unit says of the place where this checkout lies: units-* has that for places of all kinds."""

    def without(world: World) -> str:
        text = re.sub(r"(ProtectHome|PrivateTmp)=[a-z-]+", r"\1=...", make(world))
        text = re.sub(r",?\n +\"[^\"\n]*install tunectl below[^\n]*\n +\]", "]", text)
        return re.sub(r"\n  - /.*(\n    .*)*", "", text)

    return without


def told_after(host: str, *lines: str) -> Make:
    """told() on a host of one's own."""

    def make(world: World) -> str:
        world.host(host, "own")
        return told(*lines)(world)

    return make


def changing_after_apply(since: Callable[[Path], object], *lines: str) -> Make:
    """changing() on a host that was applied, and to which something was done since."""

    def make(world: World) -> str:
        root = world.host("lab4", "own")
        world.run("apply --yes --root own")
        since(root)
        return world.told_with_changes(root, *lines)

    return make


def _monitor() -> Iterator[tuple[str, Make]]:
    yield "monitor-once-tuned4", monitor_once("tuned4")
    yield "monitor-once-xeon2s", monitor_once("xeon2s")
    yield "monitor-daemon", daemon
    yield "monitor-metrics", handed(adapters.metrics)
    yield "monitor-rules", lambda _: adapters.rules()
    yield "monitor-alerts", lambda _: adapters.alerts()
    yield "alert-webhook-json", handed(adapters.webhook_json)
    yield "alert-webhook-alertmanager", handed(adapters.webhook_alertmanager)
    yield "alert-journald", handed(adapters.journald)
    yield "alert-syslog", handed(adapters.syslog)
    yield "alert-hook", handed(adapters.hook)


def _documents() -> Iterator[tuple[str, Make]]:
    for name in adapters.DOCUMENTS:
        for fmt in _GATE:
            judged = name in ("verify", "check", "preflight", "monitor", "probe.jitter") and fmt != "json"
            alone = name in ("check", "probe.jitter", "probe.selftest", "fleet.history")  # of no other case, as JSON
            if judged or fmt == "text" or (fmt == "json" and alone):
                yield f"drawn-{name}-{fmt}", lambda _, name=name, fmt=fmt: adapters.drawn(name, fmt)  # type: ignore[misc]
    for fmt in ("text", "json"):
        yield f"compare-jitter-{fmt}", told(f"compare before.json after.json --format {fmt} --root lab4")
        yield f"compare-wake-{fmt}", told(f"compare wake.json wake-later.json --format {fmt} --root lab4")
        yield f"compare-feed-{fmt}", told(f"compare feed.json feed-later.json --format {fmt} --root lab4")
        yield f"compare-hedge-{fmt}", told(f"compare hedge.json hedge-later.json --format {fmt} --root lab4")
    yield "compare-contention-text", told("compare contention.json contention-later.json --root lab4")
    yield "compare-same", told("compare before.json before.json --root lab4")
    yield "drawn-variants", lambda _: variants()
    yield "report-text", told("report wake.json -o r.html --root lab4")
    yield "fleet", fleet
    yield "snapshot", snapshot


CASES: dict[str, Make] = dict(_rows())
