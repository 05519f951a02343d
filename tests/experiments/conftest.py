"""The native program, as tests/probe has it."""

from tests.probe.conftest import cpu, hangups, installed, pair, probe, program  # noqa: F401
