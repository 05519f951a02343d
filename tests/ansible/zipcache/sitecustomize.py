"""Keeps what Python compiles out of zip archives, which it does anew in each process.

A task of Ansible's is a process that imports from a zip archive, and pip is started from its wheel: a third of what an
import of either costs is the compiler. Python imports this module when it starts, where PYTHONPATH leads here;
ZIP_CACHE is the directory to keep things in.
"""

import gc
import hashlib
import marshal
import os
import zipimport
from collections.abc import Callable
from types import CodeType
from typing import Any

Compile = Callable[[str, bytes], CodeType]
KEEPER: Any = zipimport  # it has no type for what it does not promise: of a Python without it, nothing is kept


def keeping(compiled: Compile, place: str) -> Compile:
    """The same function, which looks in `place` first. Names end with the archive's: its own path differs each time."""

    def compile_source(pathname: str, source: bytes) -> CodeType:
        inner = pathname.rpartition(".zip/")[2].encode()
        magic: bytes = KEEPER._bootstrap_external.MAGIC_NUMBER
        path = os.path.join(place, hashlib.sha256(b"\0".join((magic, inner, source))).hexdigest())
        try:
            with open(path, "rb") as file:
                code: CodeType = marshal.load(file)
                return code
        except (OSError, EOFError, ValueError):
            code = compiled(pathname, source)
        with open(f"{path}.{os.getpid()}", "wb") as file:
            marshal.dump(code, file)
        os.replace(f"{path}.{os.getpid()}", path)
        return code

    return compile_source


if "ZIP_CACHE" in os.environ and hasattr(zipimport, "_compile_source"):
    KEEPER._compile_source = keeping(KEEPER._compile_source, os.environ["ZIP_CACHE"])

gc.disable()
