"""A kernel attribute, read from or written to an open file."""

import errno
import os

_VALUE_SIZE = 4096  # a sysfs attribute is at most one page, and one read(2) returns all of it
_LIST_SIZE = 4 << 20
_OF_LISTS = b"0123456789abcdef,-"


def read_attribute(fd: int) -> bytes:
    """A whole attribute, in one read where it fits a page. Closes the file."""
    try:
        data = os.read(fd, _VALUE_SIZE)
        if len(data) < _VALUE_SIZE:
            return data
        chunks = [data]
        # only a list or mask of CPUs in /proc may be longer than a page
        while len(chunks[-1]) == _VALUE_SIZE and not chunks[-1].strip(_OF_LISTS):
            if len(chunks) * _VALUE_SIZE > _LIST_SIZE:
                raise OSError(errno.EFBIG, "is longer than any list of CPUs")
            chunks.append(os.read(fd, _VALUE_SIZE))
        return b"".join(chunks)
    finally:
        os.close(fd)


def write_attribute(fd: int, data: bytes) -> None:
    """The value in one write(2), as the kernel takes it. Closes the file."""
    try:
        os.write(fd, data)
    finally:
        os.close(fd)


def text_of(attribute: bytes) -> str:
    """Without the trailing newline; bytes that are not UTF-8 are shown as escapes."""
    return attribute.decode("utf-8", "backslashreplace").rstrip("\n")
