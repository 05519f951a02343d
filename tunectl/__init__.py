"""tunectl: tunes, proves and watches a Linux host for low-latency trading."""

__version__ = "1.0.0"
