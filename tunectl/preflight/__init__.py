"""The gate before a session: everything is gathered, and one verdict is reached."""
