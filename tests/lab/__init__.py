"""A Debian host under QEMU software emulation: a real kernel to tune, heat up, reboot and pull the plug on.

`python -m tests.lab up` starts one; `conftest.py` offers it to pytest. See docs/lab.md.
"""
