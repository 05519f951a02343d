"""The rows of the sabotage matrix, by what they break."""

from ..sabotage import Round
from . import detours, journal, keeping, losing, nextboot, running, settings, starting, topology

_OTHERS, _VALUES = settings.ROUNDS["others"], settings.ROUNDS["values"]
ROUNDS: dict[str, Round] = {
    **settings.ROUNDS,
    "values": _VALUES._replace(rows=_VALUES.rows + nextboot.IN_CI),
    "others": _OTHERS._replace(rows=_OTHERS.rows + keeping.IN_CI + running.IN_CI + losing.IN_CI),
    **nextboot.ROUNDS,
    **keeping.ROUNDS,
    **running.ROUNDS,
    **losing.ROUNDS,
    **journal.ROUNDS,
    **detours.ROUNDS,
    **starting.ROUNDS,
    **topology.ROUNDS,
}
