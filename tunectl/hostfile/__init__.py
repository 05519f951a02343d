"""The host file, the operator's only required input: its keys, how it is read, and what it asks of this host."""
