"""Applies each mutant in a copy of the tree and runs the tests that should notice: every one has to die.

    python -m tests.mutants              # all
    python -m tests.mutants plan         # those of tests/mutants/plan.toml
    python -m tests.mutants plan.waiver  # one

Exit status 0 when all died, 1 when one survived or no longer fits the source.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
_LEFT_OUT = shutil.ignore_patterns(
    ".git", ".venv", "__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache", "dist"
)
_LIMIT_S = 300
_NO_TESTS = (4, 5)  # pytest: a wrong path, nothing collected


class Mutant(NamedTuple):
    """One fault. `old` stands exactly once in `file`."""

    name: str
    file: str
    old: str
    new: str
    rule: str  # what the product promises, and the fault breaks
    tests: tuple[str, ...]  # pytest's words: files, -k


def read_mutants() -> list[Mutant]:
    """Every row of tests/mutants/*.toml; a row is ["file".name] with old, new, rule, tests."""
    return [
        Mutant(f"{path.stem}.{name}", file, **{**row, "tests": tuple(row["tests"])})
        for path in sorted(HERE.glob("*.toml"))
        for file, rows in tomllib.loads(path.read_text()).items()
        for name, row in rows.items()
    ]


def mutate(mutant: Mutant, tree: Path) -> bool:
    """Writes the fault into the copy. False where the source has changed under it."""
    path = tree / mutant.file
    text = path.read_text() if path.exists() else ""
    if text.count(mutant.old) != 1:
        return False
    path.write_text(text.replace(mutant.old, mutant.new))
    return True


def run_tests(mutant: Mutant, tree: Path) -> int:
    """pytest's exit status in the copy; a run that hangs counts as a failure."""
    env = {**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
    argv = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-m", "not lab", *mutant.tests]
    try:
        return subprocess.run(argv, cwd=tree, env=env, capture_output=True, check=False, timeout=_LIMIT_S).returncode
    except subprocess.TimeoutExpired:
        return 1


def judged(mutant: Mutant, tree: Path) -> str:
    """died, SURVIVED, or why nothing can be said. The copy is as before afterwards."""
    before = (ROOT / mutant.file).read_text() if (ROOT / mutant.file).exists() else ""
    if not mutate(mutant, tree):
        return "STALE: its old text does not stand exactly once in the file"
    code = run_tests(mutant, tree)
    (tree / mutant.file).write_text(before)
    if code in _NO_TESTS:
        return "STALE: its tests are not there"
    return "died" if code else "SURVIVED"


def main(wanted: list[str]) -> int:
    """Plays the mutants whose name, or whose file's name, is wanted; all without a word."""
    chosen = [one for one in read_mutants() if not wanted or one.name in wanted or one.name.split(".")[0] in wanted]
    if not chosen:
        print("no such mutant", file=sys.stderr)
        return 2
    lost = 0
    with tempfile.TemporaryDirectory(prefix="tunectl-mutants-") as place:
        Path(place).chmod(0o755)  # tests become another user, who has to find the copy
        tree = Path(shutil.copytree(ROOT, Path(place) / "tree", symlinks=True, ignore=_LEFT_OUT))
        for mutant in chosen:
            verdict = judged(mutant, tree)
            lost += verdict != "died"
            print(f"{mutant.name}: {verdict}" + ("" if verdict == "died" else f" ({mutant.rule})"), flush=True)
    print(f"{len(chosen) - lost} of {len(chosen)} died")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
