"""How targets are found, read and written: one module for each kind of target."""
