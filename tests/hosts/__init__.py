"""Recorded hosts, generated: what /proc and /sys look like on machines we do not have."""
