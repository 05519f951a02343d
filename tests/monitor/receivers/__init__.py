"""Tests of tunectl/monitor/receivers/."""
