"""The recorded hosts there are, by name."""

from collections.abc import Callable

from tests.hosts.catalogue_cloud import aws, awslarge, azure, gcp, kvm
from tests.hosts.catalogue_frequency import amdacpi, amdguided, amdpassive, intelnohwp, intelpassive
from tests.hosts.catalogue_servers import big, epyc, generated, xeon2s
from tests.hosts.catalogue_small import arm64, hybrid, lab4, sparse, vm2
from tests.hosts.spec import HostSpec

__all__ = ["HOSTS", "generated"]

HOSTS: dict[str, Callable[[], HostSpec]] = {
    host.__name__: host
    for host in (
        *(lab4, xeon2s, epyc, hybrid, vm2, arm64, sparse, big),
        *(intelpassive, intelnohwp, amdacpi, amdpassive, amdguided),
        *(aws, awslarge, gcp, azure, kvm),
    )
}
