"""What is on the target, in one look: argv[1] is the prefix, argv[2] the marker. Any Python 3 can run it."""

import json
import os
import sys


def text(path):
    """A file's text, or nothing."""
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return ""


prefix, marker = sys.argv[1:]
seen = {
    "version": ".".join(map(str, sys.version_info[:2])),
    "occupied": os.path.exists(prefix) and not os.path.exists(os.path.join(prefix, "pyvenv.cfg")),
    "marker": text(marker),
}
sys.stdout.write(json.dumps(seen) + "\n")
