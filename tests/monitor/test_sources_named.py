"""What a source could not read is named: a knob by its own name, and no value is made up for it."""

from __future__ import annotations

from tunectl.fix import Fix
from tunectl.model import Finding, Outcome
from tunectl.monitor.document import sources_of
from tunectl.monitor.model import Freshness, Sample, Snapshot
from tunectl.monitor.sources.drift import _sample


def reasons(*samples: Sample) -> list[str]:
    return [reason for row in sources_of(Snapshot(0.0, "", samples)) for reason in row.reasons]


def test_a_knob_that_could_not_be_read_is_named() -> None:
    dark = Finding("cpufreq.energy_perf_bias", "2", Outcome.UNREADABLE, None, "performance", "it would interrupt CPU 2")
    assert reasons(_sample(dark)) == [
        "cpufreq.energy_perf_bias[2]: could not be read, should be performance: it would interrupt CPU 2"
    ]
    assert reasons(_sample(dark._replace(desired=None, fix=Fix("run as root")))) == [
        "cpufreq.energy_perf_bias[2]: could not be read: it would interrupt CPU 2; fix: run as root"
    ]


def test_a_knob_that_this_host_lacks_is_not_called_unset() -> None:
    absent = Finding("net.lro", "", Outcome.UNSUPPORTED, None, "off", "the host file names no interface")
    assert reasons(_sample(absent)) == ["net.lro: the host file names no interface"]


def test_another_quantity_is_named_as_before() -> None:
    lost = Sample("frequency_khz", "cpu2", None, "frequency", Freshness.NO_DATA, "permission denied")
    assert reasons(lost) == ["frequency_khz: permission denied"]
