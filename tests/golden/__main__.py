"""python -m tests.golden [--update] [NAME ...]: records the cases, or names those that differ."""

import difflib
import sys
import time

from tests.golden.cases import CASES, EXPECTED, made
from tests.golden.world import World


def main(words: list[str]) -> int:
    """The exit code: 1 where something differs and was not recorded."""
    update = "--update" in words
    names = [word for word in words if word != "--update"] or list(CASES)
    world, differs = World(), 0
    try:
        for name in names:
            differs += _one(world, name, update)
    finally:
        world.close()
    if update and len(names) == len(CASES):
        for path in EXPECTED.iterdir():
            if path.stem not in CASES:
                path.unlink()
    return int(differs > 0 and not update)


def _one(world: World, name: str, update: bool) -> bool:
    begun = time.monotonic()
    path, text = EXPECTED / f"{name}.txt", made(name, world)
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    if text == before:
        return False
    print(f"{name}: differs ({time.monotonic() - begun:.2f} s)")
    if update:
        path.write_text(text, encoding="utf-8")
    else:
        lines = difflib.unified_diff(before.splitlines(), text.splitlines(), "recorded", "now", lineterm="", n=1)
        print("\n".join(list(lines)[:40]))
    return True


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
