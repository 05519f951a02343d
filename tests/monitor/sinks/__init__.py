"""Tests of tunectl/monitor/sinks/."""
