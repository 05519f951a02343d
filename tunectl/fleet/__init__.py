"""Many hosts, one answer: what each said before a session, who did not answer, and who differs from its peers.

`store` reads and writes a session's files (with the processes of `spread`), `keep` and `ask` sessions in columns
(through `engine`); the rest is pure.
"""
