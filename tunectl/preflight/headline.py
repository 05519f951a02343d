"""preflight's headline: the verdict in words, and on what terms it was reached. Pure."""

from collections.abc import Iterable, Iterator, Sequence

from tunectl.model import Outcome, Target, Waiver
from tunectl.shapes import SMIS, Jitter, Looser, NextWaiver, Smis, Waivers
from tunectl.wording import few, looser_limits, plural, seconds_of, stood_still, written

_MEANS = {
    "go": "this host is ready to trade",
    "no-go": "do not trade on this host",
    "pending-reboot": "configured, but not in force before a reboot",
    "unknown": "could not find out enough to say",
}

_FED = {
    "within": "feed kept its limit",
    "broken": "feed broke its limit",
    "not-judged": "feed was not judged",
}

_CLOCK = {
    Outcome.COMPLIANT: "the host's clock keeps its limit",
    Outcome.DRIFTED: "the host's clock is not right",
    Outcome.UNREADABLE: "nobody can vouch for the host's clock",
}


def count_waivers(waivers: Iterable[Waiver], today: str) -> Waivers:
    """How many stand, how many have expired, and which of those that stand expires next.

    `today` is an ISO date; a waiver holds on its last day.
    """
    every = tuple(waivers)
    standing = [waiver for waiver in every if waiver.until >= today]
    first = min(standing, key=lambda waiver: waiver.until, default=None)
    soonest = first and NextWaiver(str(Target(first.knob, first.instance or "")), first.until, first.reason)
    expired = [str(Target(waiver.knob, waiver.instance or "")) for waiver in every if waiver.until < today]
    return Waivers(len(standing), len(expired), soonest, expired)


def headline(
    verdict: str,
    looser: Sequence[Looser],
    waivers: Waivers,
    loaded: Jitter | None = None,
    fed: str = "",
    *,
    probes: Sequence[Jitter] = (),
    not_known: int = 0,
    clock: Outcome | None = None,
    still: Sequence[str] = (),
) -> str:
    """One sentence: what the verdict means, how many limits the `probes` broke or could not judge, beside which load it
    was measured, what became of the feed, each limit that is looser than the profile's, and the waivers.

    `fed` is the verdict of the feed's budget, "not-judged" also where it was not measured; "" where nobody asked.
    `not_known` counts the boot arguments that are in force and that the next boot may not have; `clock` is how
    the host's own clock was judged; `still` is what there is to say of times at which all CPUs stopped.
    """
    said = [_MEANS[verdict]]
    if broken := {key for probe in probes for key in probe.budget.broken_limits}:
        said.append(f"{plural(len(broken), 'limit')} of the probe broken")
    if not_judged := max((len(probe.budget.not_judged) for probe in probes), default=0):
        said.append(f"{plural(not_judged, 'limit')} of the probe not judged")
    if loaded and loaded.load and loaded.load.ran:
        said.append(f"measured quiet and under load ({', '.join(loaded.load.names)})")
    if fed:
        said.append(_FED[fed])
    if looser:
        said.append(looser_limits(looser))
    said += still
    if clock in _CLOCK:
        said.append(_CLOCK[clock])
    if not_known:
        said.append(f"the next boot is not known for {plural(not_known, 'argument')}")
    return "; ".join([*said, _waivers(waivers)])


def stood(smis: Smis, limit: float | None, probe: Jitter | None) -> Iterator[str]:
    """What is known of SMIs and other stops of all CPUs; that nobody knows where a limit asks."""
    allowed = "no limit" if limit is None else f"limit {written(SMIS, limit)}"
    stops = probe.simultaneous_stops if probe else None
    if smis.count is not None:
        yield f"SMIs in {seconds_of(smis.seconds)}: {smis.count:,} ({allowed})"
    elif limit is not None and (stops is None or stops.count is None):
        yield "SMIs are not known"
    if probe and stops and stops.count:
        yield stood_still(stops, probe.duration_s)


def _waivers(waivers: Waivers) -> str:
    expired = f", {waivers.expired} expired ({few(waivers.expired_targets)})" if waivers.expired else ""
    if not waivers.next:
        return f"nothing is waived{expired}"
    which = f"until {waivers.next.until}" if waivers.standing == 1 else f"the next expires on {waivers.next.until}"
    stand = "1 waiver stands" if waivers.standing == 1 else f"{waivers.standing} waivers stand"
    return f"{stand}, {which} ({waivers.next.target}){expired}"
