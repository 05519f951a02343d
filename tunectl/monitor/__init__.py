"""Watching: what the host's sensors and counters say, and the rules over them."""
