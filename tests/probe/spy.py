"""A library for LD_PRELOAD that ends a program once a thread of some name asks for memory."""

import os
import subprocess
from pathlib import Path

import pytest

_SOURCE = r"""
#define _GNU_SOURCE
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>
extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
static void look(void)
{
    char name[16] = "";
    prctl(PR_GET_NAME, name);
    if (strncmp(name, WATCHED, sizeof(WATCHED) - 1) == 0)
        _exit(77);
}
void *malloc(size_t n) { look(); return __libc_malloc(n); }
void *calloc(size_t n, size_t m) { look(); return __libc_calloc(n, m); }
void *realloc(void *p, size_t n) { look(); return __libc_realloc(p, n); }
"""
ENDED = 77


def spying_on(prefix: str, folder: Path) -> dict[str, str]:
    """The environment in which threads whose names begin with `prefix` end their program by asking for memory."""
    source, library = folder / "spy.c", folder / "spy.so"
    source.write_text(_SOURCE)
    argv = ["cc", "-shared", "-fPIC", f'-DWATCHED="{prefix}"', "-o", str(library), str(source)]
    if subprocess.run(argv, capture_output=True).returncode:
        pytest.skip("needs a C library with __libc_malloc")
    return {**os.environ, "LD_PRELOAD": str(library)}
