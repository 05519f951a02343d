"""tunectl: tunes, proves and watches a Linux host for low-latency trading."""

__version__ = "0.1.0"
