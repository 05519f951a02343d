"""Runs in the guest, from stdin: a line for each file at or below the roots: what restore must bring back."""

import hashlib
import os
import stat
import sys
from pathlib import Path


def facts(path: Path) -> str:
    """Mode, owner, group and content, as one word each."""
    status = path.lstat()
    if stat.S_ISREG(status.st_mode):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
    elif stat.S_ISLNK(status.st_mode):
        content = f"-> {path.readlink()}"
    else:
        content = "-"
    return f"{stat.filemode(status.st_mode)} {status.st_uid} {status.st_gid} {content}"


for root in sys.argv[1:]:
    if Path(root).is_file():
        print(f"{root}\t{facts(Path(root))}")
    for folder, folders, files in os.walk(root):
        for name in (".", *folders, *files):
            found = Path(folder, name)
            print(f"{found}\t{facts(found)}")
