"""Golden contracts: what every command, format, payload, unit and option looks like, recorded."""
