"""What is built from the C sources, each thing once: kept between runs, and shared by tests that run side by side.

The key is what decides the result: every source, the Makefile, the target, the variables and the compiler's version.
"""

import fcntl
import hashlib
import os
import shlex
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import distribution
from pathlib import Path

NATIVE = Path(__file__).parents[1] / "tunectl" / "probe" / "native"
_KEPT_S = 14 * 24 * 3600.0
_FINISHED = "finished"


def program() -> Path:
    """A tunectl-probe built from this tree."""
    return built("all") / "tunectl-probe"


def built(target: str, *variables: str) -> Path:
    """The directory that is both OUT and BUILD of `make TARGET VARIABLES`, which is run only where it has not been.

    `{BUILD}` in the target stands for that directory.

    All files in it are as new as the sources, so that `make` may be given the same directory and compiles nothing.
    AssertionError with the compiler's output where it fails, or where it wrote into the source tree.
    """
    key = _key(target, variables)
    folder = cache() / key
    with _locked(folder.with_suffix(".lock")):
        if not (folder / _FINISHED).exists():
            _make(folder, target, variables)
        now = time.time()
        # Not each time: another may have `make` look at the files at this moment.
        if folder.stat().st_mtime < max(now - 24 * 3600, *(path.stat().st_mtime for path in sources())):
            for path in [*folder.rglob("*"), folder]:
                os.utime(path, (now, now))
    return folder


def make(*arguments: str) -> subprocess.CompletedProcess[str]:
    """`make` in the source tree; output and status are the caller's to judge."""
    argv = ["make", "-C", str(NATIVE), "WERROR=-Werror", *arguments]
    return subprocess.run(argv, capture_output=True, text=True, check=False)


def zig_library() -> Path:
    """zig's own library, for ZIG_LIB_DIR: at one path for all clones of this tree.

    zig keeps the musl that it has compiled by the path of its library, and each clone's virtual environment has one: a
    minute of CPU time in each.
    """
    zig = distribution("ziglang")
    kept = cache() / f"zig-{zig.version}"
    with _locked(kept.with_name(f"{kept.name}.lock")):
        if not kept.exists():
            part = kept.with_name(f"{kept.name}.part")
            shutil.rmtree(part, ignore_errors=True)
            shutil.copytree(str(zig.locate_file("ziglang/lib")), part, copy_function=_link)
            part.rename(kept)
        os.utime(kept)
    return kept


def sources() -> dict[Path, bytes]:
    """Every file of the C part; a build of one's own in the tree is no source."""
    files = (path for path in NATIVE.rglob("*") if path.is_file() and "build" not in path.parts)
    return {path: path.read_bytes() for path in sorted(files)}


def _key(target: str, variables: tuple[str, ...]) -> str:
    chosen = dict(word.split("=", 1) for word in variables)
    compiler = chosen.get("CC", os.environ.get("CC", "cc"))
    argv = [*shlex.split(compiler.partition(" -target")[0]), "--version"]
    version = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    environment = [f"{name}={os.environ.get(name, '')}" for name in ("CC", "CFLAGS", "LDFLAGS")]
    digest = hashlib.sha256("\0".join([target, *variables, version, *environment]).encode())
    for path, content in sources().items():
        digest.update(f"\0{path.relative_to(NATIVE)}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:24]


def cache() -> Path:
    """Kept between runs; where the home directory cannot be written, in the directory for temporary files."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tunectl-tests"
    for folder in (home, Path(tempfile.gettempdir()) / f"tunectl-tests-{os.getuid()}"):
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(folder, os.W_OK):
            return folder
    raise RuntimeError(f"neither {home} nor {tempfile.gettempdir()} can be written")


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _make(folder: Path, target: str, variables: tuple[str, ...]) -> None:
    _forget_old(folder.parent)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    before = sources()
    done = make(target.format(BUILD=folder), f"OUT={folder}", f"BUILD={folder}", *variables)
    assert done.returncode == 0, done.stdout + done.stderr
    assert sources() == before, "a build wrote into the source tree"
    (folder / _FINISHED).touch()


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system
        shutil.copy2(source, target)


def _forget_old(kept: Path) -> None:
    """What no test has used for two weeks. Locks stay: somebody may wait for one."""
    for folder in kept.iterdir():
        with suppress(FileNotFoundError):  # another run forgets, too
            if folder.is_dir() and folder.stat().st_mtime < time.time() - _KEPT_S:
                shutil.rmtree(folder, ignore_errors=True)
