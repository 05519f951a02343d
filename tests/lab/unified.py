"""Runs in the guest, from stdin: has sed(1) edit the command line inside a unified kernel image, in its place."""

import subprocess
import sys

import pefile  # type: ignore[import-not-found, unused-ignore]

script, path = sys.argv[1:]
image = pefile.PE(path, fast_load=True)
(section,) = (one for one in image.sections if one.Name.rstrip(b"\0") == b".cmdline")
line = section.get_data()[: section.Misc_VirtualSize].rstrip(b"\0\n") + b"\n"
edited = subprocess.run(["sed", script], input=line, capture_output=True, check=True).stdout.rstrip(b"\n")
assert len(edited) < section.SizeOfRawData
section.Misc_VirtualSize = len(edited)
image.set_bytes_at_offset(section.PointerToRawData, edited.ljust(section.SizeOfRawData, b"\0"))
data = bytes(image.write())
with open(path, "wb") as file:
    file.write(data)
