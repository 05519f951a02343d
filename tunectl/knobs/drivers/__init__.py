"""How a target is enumerated, read and written: one module a way."""
