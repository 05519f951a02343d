"""Hedge results as `tunectl probe hedge` makes them."""

from typing import Any

from tests.experiments.hedges import raw_document, simulated_document
from tunectl.experiments.hedge_cells import explained_hedge


def hedge_document(*cases: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """The document of these raw cases."""
    return explained_hedge(raw_document(*cases, **changes))


def simulated_hedge(*cases: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """The same of a simulation."""
    return explained_hedge(simulated_document(*cases, **changes))
