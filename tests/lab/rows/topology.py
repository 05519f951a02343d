"""What only a machine with several threads a core or several memory nodes can break."""

from ..sabotage import Kind, Round, Sabotage, declare
from .running import ONE_ENGINE, twin

_BALANCING = "/proc/sys/kernel/numa_balancing"
_NODES, _ONE_NODE = "test -d /sys/devices/system/node/node1", "this machine has one memory node"
_SMT = "/sys/devices/system/cpu/smt/control"

ROUNDS = {
    "topology": Round(
        (
            Sabotage(
                Kind.VALUE,
                "memory is balanced over the nodes",
                f"echo 1 > {_BALANCING}",
                ("mm.numa_balancing",),
                who="a database package's sysctl script",
                innocent=f"echo 0 > {_BALANCING}",
                needs=_NODES,
                lacks=_ONE_NODE,
            ),
            Sabotage(
                Kind.MEMORY,
                "the engine's memory is on the other node",
                twin(1, "-p AllowedMemoryNodes=1"),
                ("check.trading_memory_local[engine]",),
                command="check",
                who="a unit that was copied from the engine of the other socket",
                innocent=f"{declare('threads', *ONE_ENGINE)}; {twin(1, '-p AllowedMemoryNodes=0')}",
                says=("node 1",),
                decides=twin(1, "-p AllowedMemoryNodes=0"),
                needs=_NODES,
                lacks=_ONE_NODE,
            ),
            Sabotage(
                Kind.CPU,
                "the second threads of all cores are switched off",
                f"echo off > {_SMT}",
                ("cpu.online[3]",),
                who="a hardening guide",
                innocent=f"echo on > {_SMT}",
                says=("smt/control is off",),
                needs=f"grep -qx on {_SMT}",
                lacks="this machine has one thread a core",
            ),
        ),
        long=True,
        alone=True,
    )
}
