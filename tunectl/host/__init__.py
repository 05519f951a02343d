"""The machine. The only code that touches it."""
