"""What the kernel says of its own clock: adjtimex(2) without a mode, which anybody may call and which changes nothing.

Source: adjtimex(2); include/uapi/linux/timex.h; kernel/time/ntp.c: until somebody says how far off the clock may be,
the kernel itself adds 500 µs a second to `maxerror`, and calls a clock unsynchronised from 16 s on.
"""

import ctypes

from tunectl.shapes import KernelClock

_UNSYNC, _NANO = 0x0040, 0x2000  # STA_*
_ERROR = 5  # TIME_ERROR
_SCALED_PPM = 1 << 16
_LONG, _INT = ctypes.c_long, ctypes.c_int


class _Timex(ctypes.Structure):
    _fields_ = (
        *(("modes", ctypes.c_uint), ("offset", _LONG), ("freq", _LONG), ("maxerror", _LONG), ("esterror", _LONG)),
        *(("status", _INT), ("constant", _LONG), ("precision", _LONG), ("tolerance", _LONG)),
        *(("seconds", _LONG), ("fraction", _LONG), ("tick", _LONG), ("ppsfreq", _LONG), ("jitter", _LONG)),
        *(("shift", _INT), ("stabil", _LONG), ("counts", _LONG * 4), ("tai", _INT), ("reserved", _INT * 11)),
    )


def read_kernel_clock() -> KernelClock | None:
    """Of the running host; None where a filter of system calls refuses even that."""
    libc = ctypes.CDLL(None)
    timex = _Timex()  # modes 0: nothing is set
    state: int = libc.adjtimex(ctypes.byref(timex))
    if state < 0:
        return None
    return KernelClock(
        state != _ERROR and not timex.status & _UNSYNC,
        timex.offset * (1 if timex.status & _NANO else 1000),
        timex.freq / _SCALED_PPM,
        timex.tai,
        timex.maxerror * 1000,
        timex.esterror * 1000,
    )
