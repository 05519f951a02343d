"""The long set: what is too long for CI, in parts of under an hour each (docs/testing.md).

    python -m tests.long            # every part that has not passed at this commit, one after the other
    python -m tests.long --list     # the parts, and the last result of each, as docs/testing.md shows them
    python -m tests.long soak       # one part, or several, by name, whether they passed or not

What passed at which commit stands in ~/.cache/tunectl-long (or $TUNECTL_LONG_CACHE), with the output of each part's
last run: stopped anywhere, the same command goes on with the first part that is missing. A result counts until a commit
changes something that a part may play. A tree with changes that are not committed is nobody's commit: its results are
noted as such and do not count.
"""

import argparse
import datetime
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.lab.platforms import PLATFORMS, Platform

ROOT = Path(__file__).parent.parent
LIMIT_S = 3600.0
# The table of results, what is told of a change, and the README's pictures: no part plays them.
UNPLAYED = ("docs/testing.md", "CHANGELOG.md", "ansible/CHANGELOG.md", "docs/go.json", "docs/no-go*")
COLUMNS = ("part", "what it plays", "last result", "commit", "date", "minutes")


class Part(NamedTuple):
    """One row of the long set."""

    name: str
    plays: str
    words: tuple[str, ...]  # for this Python: ("-m", "pytest", ...)
    variables: Mapping[str, str] = {}  # in the environment


class Result(NamedTuple):
    """What came of a part's last run."""

    outcome: str  # "passed", or what happened instead
    commit: str
    day: str
    seconds: float


def _tests(name: str, plays: str, *words: str, **variables: str) -> Part:
    return Part(name, plays, ("-m", "pytest", *words), variables)


def _lab(name: str, plays: str, *words: str) -> Part:
    return _tests(name, plays, "-m", "lab", *(f"tests/lab/{word}" if ".py" in word else word for word in words),
                  TUNECTL_LAB="required")  # fmt: skip


def _rounds(name: str, plays: str, rounds: str, *more: str) -> Part:
    """Rounds of the sabotage matrix: the ids of their tests begin with [ROUND."""
    words = (*(f"[{one}{end}" for one in rounds.split() for end in "-]"), *more, "the_table")
    return _lab(name, plays, "test_sabotage.py", "-k", " or ".join(words))


def _tour(platform: Platform) -> Part:
    """Its tests are [PLATFORM] and [PLATFORM-ROUND], whole: one platform's name may begin another's."""
    words = (f"[{platform.name}]", *(f"[{platform.name}-{one}]" for one in platform.rounds))
    plays = f"the package installed, a proved host, sabotage, and back to the byte: {platform.what}"
    return _lab(f"tour-{platform.name}", plays, "test_platforms_lab.py", "-k", " or ".join(words))


def _causes(platform: str) -> Part:
    plays = f"a CPU interrupted in a dozen known ways, and each named: {PLATFORMS[platform].what}"
    words = ("-m", "lab", "tests/lab/test_causes_lab.py")
    return _tests(f"causes-{platform}", plays, *words, TUNECTL_LAB="required", TUNECTL_LAB_PLATFORM=platform)


def _trials(name: str, what: str, platform: str, keywords: str) -> Part:
    """Of the tests of changes that wait for their confirmation, those that these words name."""
    words = ("-m", "lab", "tests/lab/test_trials_lab.py", "tests/lab/test_watchdog_lab.py", "-k", keywords)
    plays = f"{what}: {PLATFORMS[platform].what}"
    return _tests(f"{name}-{platform}", plays, *words, TUNECTL_LAB="required", TUNECTL_LAB_PLATFORM=platform)


# What a platform's boot loader has a part in: boots that are tried and come up, and those that do not.
_UP = "was_tried or in_a_tried or tried_boot or no_try or preflight or kexec"
_DOWN = "does_not_boot or prove_itself or watchdog"
_LOADERS = ("bookworm", "trixie", "uki")
_CAGE = "test_ansible_lab.py"
_FIRST_HALF = "roll_takes or timer_comes or second_run or may_trade or drift_is_found"
PARTS = (
    _tests("strides", "a kill, an EIO and an EINTR at every call of apply and restore", "-n", "2", "tests/tuning",
           TUNECTL_STRIDE="1"),
    Part("mutants", "every mutant dies", ("-m", "tests.mutants")),
    _tests("others", "every other test marked long that needs no lab", "-m", "long and not lab",
           "--ignore", "tests/release", "--ignore", "tests/fleet/test_clickhouse.py"),
    _tests("clickhouse", "the fleet's columns in ClickHouse and in DuckDB answer alike: brings chdb, 534 MB",
           "-m", "long", "tests/fleet/test_clickhouse.py", TUNECTL_CHDB="required"),
    _tests("artefacts", "a whole release, installed into bare Debian 12 and 13: upgraded, removed, purged",
           "-m", "long", "tests/release"),
    _rounds("sabotage", "the sabotage matrix, each fix followed: settings, plugged cards",
            "values files others by-hand boot boot-again", "plugged_card", "only_root"),
    _rounds("sabotage-boot", "the same: what GRUB boots next, and booted last",
            "entry source words once chosen rebooted barred ticking"),
    _rounds("sabotage-units", "the same: what keeps our settings, what writes them later",
            "keeper writers balancer latecomers leftout"),
    _rounds("sabotage-beside", "the same: what runs beside the engine, what was left on, what is gone",
            "noise shootdowns spinners surroundings threads twins misplaced arriving interrupt-threads groups residue"
            " cooling memory gone journal topology"),
    _lab("grub", "GRUB itself boots what grub-emu is asked, and sixty made-up configurations", "test_grub_lab.py"),
    _lab("product", "killed and power lost at each moment, twenty rounds, the lab's own tests",
         "test_product.py", "test_lab_itself.py"),
    _trials("confirmed", "whatever ends a change that waits, the host has one set: power lost, a full disk",
            "bookworm", f"not ({_UP} or {_DOWN})"),
    *(_trials("trials", "boots that are tried, confirmed or not", platform, _UP) for platform in _LOADERS),
    *(_trials("hangs", "boots that are tried and do not come up: panics, prompts, hangs", platform, _DOWN)
      for platform in _LOADERS),
    _lab("isolation", "isolation without a reboot, the probe on a real kernel",
         "test_runtime_isolation_lab.py", "test_probe_lab.py"),
    *map(_causes, ("bookworm", "trixie")),
    _lab("monitor", "ten failed fans, repair, hardening, the timer's preflight",
         "test_monitor_lab.py", "test_timer_lab.py", "-k", "not load_without"),
    _lab("soak", "ten minutes of load without an alarm", "test_monitor_lab.py", "-k", "load_without"),
    _lab("cards", "cards behind PCI Express: links, errors, power, time stamps, and whom a look at them reaches",
         "test_cards_lab.py", "test_card_clock_lab.py"),
    _lab("tutorial", "docs/tutorial.md, typed line by line on a server that nobody has tuned", "test_tutorial_lab.py"),
    _lab("packages", "the .deb where systemd runs: upgraded, downgraded, removed, purged, beside a running monitor",
         "test_package_lab.py"),
    *map(_tour, PLATFORMS.values()),
    _lab("cage", "Ansible over ssh: two hosts provisioned, rolled, proved, mended", _CAGE, "-k", _FIRST_HALF),
    _lab("cage-upgrade", "the same two hosts upgraded, one hangs, both restored", _CAGE, "-k", f"not ({_FIRST_HALF})"),
)  # fmt: skip


def main(argv: Sequence[str] | None = None) -> int:
    """The exit code: 0 where every part that was asked for has passed."""
    parser = argparse.ArgumentParser(prog="python -m tests.long", description="The long set (docs/testing.md).")
    parser.add_argument("parts", nargs="*", metavar="PART", help="only these, whether they passed or not")
    parser.add_argument("--list", action="store_true", help="show the parts and their last results")
    options = parser.parse_args(argv)
    folder = cache()
    if unknown := set(options.parts) - {part.name for part in PARTS}:
        parser.error(f"there is no part {', '.join(sorted(unknown))}; --list shows them")
    if not options.list:
        missing = [part for part in PARTS if not passed(load(folder), part.name, commit())]
        run([part for part in PARTS if part.name in options.parts] or missing, folder, commit())
    results = load(folder)
    print(table(PARTS, results))
    asked = options.parts or [part.name for part in PARTS]
    return 0 if options.list or all(passed(results, name, commit()) for name in asked) else 1


def cache() -> Path:
    """Where results are noted, and what one part alone needs is installed."""
    return Path(os.environ.get("TUNECTL_LONG_CACHE") or Path.home() / ".cache/tunectl-long")


def commit() -> str:
    """The last commit that changed what a part may play, with a `+` where the tree holds more than that."""
    played = (".", *(f":!{path}" for path in UNPLAYED))
    short = _git("log", "-1", "--format=%h", "--abbrev=10", "--", *played)
    return f"{short}+" if _git("status", "--porcelain", "--untracked-files=normal", "--", *played) else short


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def load(folder: Path) -> dict[str, Result]:
    """The last result of each part that ever ran."""
    try:
        kept = json.loads((folder / "results.json").read_text())
    except FileNotFoundError:
        return {}
    return {name: Result(**one) for name, one in kept.items()}


def save(folder: Path, results: Mapping[str, Result]) -> None:
    """Beside, and then renamed: a run may be stopped at any time."""
    folder.mkdir(parents=True, exist_ok=True)
    beside = folder / "results.json.new"
    beside.write_text(json.dumps({name: one._asdict() for name, one in results.items()}, indent=2) + "\n")
    beside.rename(folder / "results.json")


def passed(results: Mapping[str, Result], name: str, commit: str) -> bool:
    """Has this part passed, on exactly this commit?"""
    clean = not commit.endswith("+")
    return clean and name in results and (results[name].outcome, results[name].commit) == ("passed", commit)


def run(parts: Sequence[Part], folder: Path, commit: str, limit_s: float = LIMIT_S) -> None:
    """Run these one after the other; each result is noted at once."""
    folder.mkdir(parents=True, exist_ok=True)
    for part in parts:
        log = folder / f"{part.name}.log"
        print(f"{part.name}: {part.plays} (output in {log})", flush=True)
        began = time.monotonic()
        outcome = _outcome(part, log, limit_s)
        result = Result(outcome, commit, datetime.date.today().isoformat(), round(time.monotonic() - began, 1))
        save(folder, {**load(folder), part.name: result})
        print(row(part, result), flush=True)


def _outcome(part: Part, log: Path, limit_s: float) -> str:
    """Run one part, in a session of its own, so that all of it can be ended."""
    environment = {**os.environ, **part.variables}
    with log.open("w") as file:
        started = subprocess.Popen(
            [sys.executable, *part.words],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = started.wait(timeout=limit_s)
        except BaseException as error:
            os.killpg(started.pid, signal.SIGTERM)
            started.wait()
            if isinstance(error, subprocess.TimeoutExpired):
                return f"not done after {limit_s / 60:g} minutes"
            raise
    return "passed" if code == 0 else f"failed, exit {code}"


def table(parts: Sequence[Part], results: Mapping[str, Result]) -> str:
    """The rows for docs/testing.md."""
    head = [f"| {' | '.join(COLUMNS)} |", f"|{'---|' * len(COLUMNS)}"]
    return "\n".join([*head, *(row(part, results.get(part.name)) for part in parts)])


def row(part: Part, result: Result | None) -> str:
    """One part and its last result."""
    last = (
        (result.outcome, result.commit, result.day, f"{result.seconds / 60:.1f}") if result else ("not run", "", "", "")
    )
    return f"| {' | '.join((part.name, part.plays, *last))} |"


if __name__ == "__main__":
    sys.exit(main())
