"""Language runtimes with a garbage collector, told by what a process executes and maps, and never by its name alone.

The JVM and .NET are libraries; a Go program has Go's own sections in its executable; Node.js, and a .NET program in one
file, export symbols of their own. /proc/PID/{maps,exe,cmdline,environ}: none of them interrupts the process.
Source: proc(5); elf(5); Go: debug/buildinfo; Node.js: src/node.h (node::Start); .NET: docs/design/features/single-file.
"""

import re
import struct
from enum import Enum
from typing import NamedTuple

from tunectl.host.procs import Thread, read_thread, read_tids
from tunectl.host.sysroot import Sysroot


class Runtime(Enum):
    """A runtime by its own name."""

    GO = "Go"
    JVM = "the JVM"
    DOTNET = ".NET"
    NODE = "Node.js"


class _Marks(NamedTuple):
    """How a runtime is told, what its collector's threads are called, and what sets the collector."""

    library: str  # the name of a mapped file
    section: bytes  # of the executable
    symbol: bytes  # that the executable exports
    threads: str  # the names of the collector's threads; "" where any thread of the process may collect
    arguments: str  # the words of the command line
    variables: str  # of the environment
    worded: str  # of the environment, too: the variables that hold words of the command line


_NONE = r"(?!)"
_MARKS = {
    Runtime.GO: _Marks(_NONE, b".go.buildinfo", b"", "", _NONE, r"GOGC|GOMEMLIMIT|GOMAXPROCS", _NONE),
    Runtime.JVM: _Marks(
        r"libjvm\.so",
        b"",
        b"",
        r"(GC |G1 |VM Thread|RuntimeWorker#|[XZ](Director|Driver|Stat|Uncommitter|Unmapper|Worker)"
        r"|Shenandoah|ParGC|CMS|Concurrent Mark)",
        r"-Xm[nsx]\w+|-Xgc\S*|-XX:[+-]?(Use\w+GC|\w*GC(Threads|PauseMillis)\w*|AlwaysPreTouch|\w*HeapSize|ZGenerational)"
        r"(=\S*)?",
        _NONE,
        r"JAVA_TOOL_OPTIONS|JDK_JAVA_OPTIONS|_JAVA_OPTIONS",
    ),
    Runtime.DOTNET: _Marks(
        r"libcoreclr\.so",
        b"",
        b"DotNetRuntimeInfo",
        r"\.NET (Server GC|BGC|Background GC|Finalizer)",
        _NONE,
        r"(DOTNET|COMPlus)_(gc|GC)\w+",
        _NONE,
    ),
    Runtime.NODE: _Marks(
        r"libnode\.so[.\d]*",
        b"",
        b"_ZN4node5StartEiPPc",
        "",
        r"--(max[-_]old[-_]space[-_]size|max[-_]semi[-_]space[-_]size|v8[-_]pool[-_]size)=\d+|--single[-_]threaded[-_]gc",
        _NONE,
        "NODE_OPTIONS",
    ),
}
_FILE = re.compile(r" (/\S.*)$", re.MULTILINE)
_MOST = 64 << 20  # bytes of one section that are read


def read_runtimes(root: Sysroot, pid: int) -> tuple[Runtime, ...]:
    """The runtimes that a process has; one that is linked in, without these marks, is not seen.

    OSError where its maps or its executable are not ours to read; ValueError where that is no ELF file with sections.
    """
    names = {path.rpartition("/")[2] for path in _FILE.findall(root.read_text(f"proc/{pid}/maps"))}
    runtimes = {
        runtime for runtime, marks in _MARKS.items() if any(re.fullmatch(marks.library, name) for name in names)
    }
    exe = f"proc/{pid}/exe"
    sections = read_sections(root, exe)
    exported = root.read_bytes(exe, *sections[b".dynstr"]) if b".dynstr" in sections else b""
    shown = {name for name in (*sections, *exported.split(b"\0")) if name}
    runtimes |= {runtime for runtime, marks in _MARKS.items() if {marks.section, marks.symbol} & shown}
    return tuple(runtime for runtime in Runtime if runtime in runtimes)


def read_sections(root: Sysroot, path: str) -> dict[bytes, tuple[int, int]]:
    """{name of a section of an ELF file: (its size, 64 MiB at most; its place)}. OSError; ValueError for no ELF."""
    head = root.read_bytes(path, 64)
    if head[:4] != b"\x7fELF" or len(head) < 52:
        raise ValueError("is no ELF file")
    wide, order = head[4] == 2, "<" if head[5] == 1 else ">"
    table = struct.unpack_from(f"{order}{'Q' if wide else 'I'}", head, 40 if wide else 32)[0]
    each, count, names = struct.unpack_from(f"{order}3H", head, 58 if wide else 46)
    rows = root.read_bytes(path, each * count, table) if table else b""
    # sh_name; sh_offset and sh_size.
    form, place = (f"{order}I20x2Q", 40) if wide else (f"{order}I12x2I", 24)
    if not count or each < place or len(rows) < each * count or names >= count:
        raise ValueError("has no section names")
    headers = [struct.unpack_from(form, rows, each * number) for number in range(count)]
    text = root.read_bytes(path, min(headers[names][2], _MOST), headers[names][1])
    return {text[name:].partition(b"\0")[0]: (min(size, _MOST), offset) for name, offset, size in headers}


def collectors(root: Sysroot, pid: int, runtime: Runtime) -> list[Thread]:
    """The threads that may do its collector's work, with where they may run; in Go and Node.js any thread may.

    Where no thread has a name of its collector, each may be it: .NET Core 3.1 gives its threads no names.
    """
    pattern = _MARKS[runtime].threads
    threads = (read_thread(root, pid, tid, affinity=True) for tid in read_tids(root, pid))
    alive = [thread for thread in threads if thread and thread.alive]
    return [thread for thread in alive if pattern and re.match(pattern, thread.comm)] or alive


def settings_of(root: Sysroot, pid: int, runtime: Runtime) -> tuple[list[str], bool]:
    """What sets its collector, as words, and whether the environment could be read. No other word is handed on."""
    marks = _MARKS[runtime]
    found = [word for word in _words(root.get_text(f"proc/{pid}/cmdline")) if re.fullmatch(marks.arguments, word)]
    try:
        variables = _words(root.read_text(f"proc/{pid}/environ"))
    except OSError:
        return found, False
    for variable in variables:
        name, _, value = variable.partition("=")
        if re.fullmatch(marks.variables, name):
            found.append(variable)
        elif re.fullmatch(marks.worded, name):
            found += [word for word in value.split() if re.fullmatch(marks.arguments, word)]
    return found, True


def _words(text: str) -> list[str]:
    return [word for word in text.split("\0") if word]
