"""Many hosts, one answer: what each said before a session, who did not answer, and who differs from its peers.

Only `store` touches files, those of a session's directory; all the rest is pure.
"""
