"""A proposed host file, as it is to be written: `tunectl propose --format toml > host.toml`."""

from tunectl.errors import TunectlError
from tunectl.model import Document


def render(document: Document, *, width: int, colour: bool) -> str:
    """The host file of a proposal. TunectlError for any other document, and where nothing can be proposed."""
    if document.name != "propose":
        raise TunectlError(f"there is no TOML form of tunectl.{document.name}")
    if document.body["refusal"]:
        raise TunectlError(f"nothing to propose: {document.body['refusal']}")
    return str(document.body["host_file"])
