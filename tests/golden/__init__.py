"""Golden contracts: what every command, format, payload and option looks like, recorded; see docs/testing.md."""
