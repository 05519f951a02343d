"""Feed results as `tunectl probe feed` makes them."""

from typing import Any

from tests.experiments.feeds import raw_document
from tunectl.experiments.feed_cells import RoundTrip, explained_feed
from tunectl.experiments.pair import Peer

TRIP = RoundTrip(Peer("10.0.0.2:7000", 2_000_000_000, 5), "eth1")


def feed_document(*cases: dict[str, Any], trip: RoundTrip | None = None, **changes: Any) -> dict[str, Any]:
    """The document of these raw cases."""
    return explained_feed(raw_document(*cases, **changes), trip=trip)
