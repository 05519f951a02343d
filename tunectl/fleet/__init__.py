"""Many hosts, one answer: what each said before a session, who did not answer, and who differs from its peers.

Only `store` reads and writes files, in the directory of a session, with the processes of `spread`; the rest is pure.
"""
