"""How every knob was judged last, and how it is judged again at little cost.

A judgement is a function of the files it read: where a knob has thousands of files (one for each interrupt,
one for each idle state), they are compared with what they were, a share in each snapshot, and only a difference has the
knob judged again. A knob with few files is simply judged again in its turn. Both happen once in `drift_interval_s`.
"""

import time
from collections.abc import Iterable, Sequence

from tunectl.host.nonintrusive import TracingSysroot
from tunectl.knobs import KNOBS
from tunectl.knobs.row import View
from tunectl.model import Finding, Lifetime, Outcome, Plan, Reading, Setting
from tunectl.monitor.open_files import Texts
from tunectl.monitor.watched_host import WatchedHost
from tunectl.tuning.inspection import JOURNAL
from tunectl.tuning.journal import peek

_HELD = 16384
_MANY = 64  # files; a knob with more is watched by its files
_AT_ONCE = 40  # knobs with few files: what every judgement looks at (the boot loader, the journal) costs as much as ten
_EFFECTIVE = "/effective_affinity_list"
# Constants of a boot, and counts that only explain: an interrupt that comes is seen in /proc/interrupts.
_UNCHANGING = (
    "/cpuidle/",
    "/latency",
    "/name",
    "/actions",
    "/per_cpu_count",
    "/cpuinfo_max_freq",
    "/scaling_available_governors",
    "/stat",  # which thread is a kernel's; its times rise with every snapshot
)
_IN_TURN = ("irq.thread_priority",)  # it stands in such a file: that of a thread has its priority beside its times


class Knobs:
    """The findings by knob."""

    def __init__(self, host: WatchedHost) -> None:
        self.root = TracingSysroot(host.root.root, host.quiet)
        self._held = Texts(host.root, max(min(host.room // 4, _HELD), 0))
        self.inspection = host.inspection._replace(root=self.root)
        self.findings: dict[str, tuple[Finding, ...]] = {}
        self.cost_s = 0.0  # CPU time of judging them all
        self.texts: dict[str, bytes | int | frozenset[str]] = {}  # of the files (errno where unreadable), directories
        self.owners: dict[str, str] = {}  # the knob a path was read for
        self.few: list[list[str]] = []  # knobs that are judged again in their turn, together
        self._good: set[bytes] = set()  # what an interrupt that is where it should be shows
        self._readings: dict[str, list[Reading]] = {}  # of boot arguments: others are judged with them in mind
        self._files: dict[str, dict[str, None]] = {}

    def settings(self) -> tuple[Setting, ...]:
        """What is wanted, and what an earlier host file wanted of the boot loader."""
        return (*self.inspection.config.settings, *self.inspection.leftovers())

    def judge_all(self, today: str, *, watched: bool) -> None:
        """Everything, as `tunectl verify` would; what is `watched` is read once more, to be compared from now on."""
        start = time.thread_time()
        journal = peek(self.inspection.journal.directory)
        self.inspection = self.inspection._replace(journal=journal, today=today)
        chosen = self.settings()
        plan = self.inspection.assess(chosen, self._observe)
        self._store(plan, [JOURNAL, *(setting.knob for setting in chosen)])
        known = len(self.texts) or not watched
        if watched:
            self._watch()
        self.cost_s = time.thread_time() - start
        if not known:  # what was written between the judgement and the first comparison must not go unseen
            self.judge(set(self.owners.values()))

    def judge(self, names: Iterable[str]) -> None:
        """Some knobs again; the boot arguments beside them are taken as they were last read."""
        wanted = set(names)
        with self.root.one_look():
            settings = self.settings()
            if any(map(_of_the_boot, wanted)):  # the words of the next boot's line may take others away
                wanted |= {setting.knob for setting in settings if KNOBS[setting.knob].absence.by_words}
            boot = {name for name in self._readings if name.startswith("boot.")}
            chosen = tuple(setting for setting in settings if setting.knob in wanted | boot)
            fresh = wanted | {setting.knob for setting in chosen if setting.knob not in self._readings}

            def observe(view: View, settings: Sequence[Setting]) -> list[Reading]:
                kept = [setting.knob for setting in settings if setting.knob not in fresh]
                old = [reading for knob in kept for reading in self._readings[knob]]
                return old + self._observe(view, [setting for setting in settings if setting.knob in fresh])

            plan = self.inspection.assess(chosen, observe)
        self._store(plan, sorted(fresh))

    def _observe(self, view: View, settings: Sequence[Setting]) -> list[Reading]:
        """As tuning/inspection.py, remembering what was read for which knob."""
        readings = []
        for setting in settings:
            self.root.begin()
            knob = KNOBS[setting.knob]
            mine = list(knob.driver.observe(knob, view, setting.value))
            if knob.facility == "boot":
                self._readings[knob.name] = mine
            self._files[knob.name] = {**self.root.files, **dict.fromkeys(f"{d}/" for d in self.root.directories)}
            readings += mine
        return readings

    def _store(self, plan: Plan, names: Iterable[str]) -> None:
        """New ones in the order of `names`, so that what is shown does not change from run to run."""
        found: dict[str, list[Finding]] = {name: [] for name in names}
        for finding in plan.findings:
            if finding.knob in found:
                found[finding.knob].append(finding)
        self.findings.update((name, tuple(findings)) for name, findings in found.items())

    def _watch(self) -> None:
        """What is compared from now on. A text that is known already stays: it may differ by now."""
        many = {name for name, files in self._files.items() if len(files) > _MANY and name not in _IN_TURN}
        few = [name for name in self.findings if name not in many]
        boot = [name for name in few if _of_the_boot(name)]  # they all read the same files: at once
        others = [name for name in few if name not in boot]
        self.few = [others[at : at + _AT_ONCE] for at in range(0, len(others), _AT_ONCE)] + ([boot] if boot else [])
        self.owners = {path: name for name in many for path in _telling(self._files[name])}
        self.texts = {path: self.texts[path] if path in self.texts else self.text(path) for path in self.owners}
        self._held.keep(self.owners)
        irqs = self.findings.get("irq.affinity", ())
        good = {f"proc/irq/{irq.instance}{_EFFECTIVE}" for irq in irqs if irq.outcome is Outcome.COMPLIANT}
        self._good = {text for path, text in self.texts.items() if path in good and isinstance(text, bytes)}

    def text(self, path: str) -> bytes | int | frozenset[str]:
        """What a file holds now, or the errno; of a directory (`path/`) the names."""
        if path.endswith("/"):
            return frozenset(self.root.listdir(path[:-1]))
        return self._held.text(path)

    def differs(self, path: str) -> bool:
        """Compares one path with what it held; True where that may change a judgement."""
        before, now = self.texts[path], self.text(path)
        if now == before:
            return False
        self.texts[path] = now
        # Thousands of interrupts may be balanced among the CPUs that are right for all of them.
        return not (path.endswith(_EFFECTIVE) and before in self._good and now in self._good)


def _of_the_boot(name: str) -> bool:
    """Is it judged by the boot loader's files?"""
    return name in KNOBS and KNOBS[name].lifetime is Lifetime.BOOT


def _telling(files: dict[str, None]) -> list[str]:
    """The paths worth comparing. Where an interrupt goes follows from where it may go, and is what is judged."""
    return [
        path
        for path in files
        if not path.endswith(_UNCHANGING)
        and not (path.endswith("/smp_affinity_list") and path[:-18] + _EFFECTIVE in files)
    ]
