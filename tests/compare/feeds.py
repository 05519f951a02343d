"""Feed results as `tunectl probe feed` makes them."""

from __future__ import annotations

from typing import Any

from tests.probe.feeds import raw_document
from tunectl.probe.feed_explain import explained_feed


def feed_document(*cases: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """The document of these raw cases."""
    return explained_feed(raw_document(*cases, **changes))
