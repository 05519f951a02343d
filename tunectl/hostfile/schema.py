"""The host file's keys as a JSON Schema, for editors and for people who write host files. Pure."""

from typing import Annotated, Any, Literal, get_args, get_origin

import msgspec

from tunectl.bootloader.families import FAMILIES
from tunectl.hostfile import shape
from tunectl.hostfile.shape import HostFile
from tunectl.knobs import KNOBS
from tunectl.probe.loads import CHOICES


def schema() -> dict[str, Any]:
    """JSON Schema 2020-12 of the host file's TOML; a key that may be null may be left out."""
    found = msgspec.json.schema(HostFile)
    keys = found["$defs"]["HostFile"]["properties"]
    for struct in (getattr(shape, name) for name in found["$defs"]):
        for field in msgspec.structs.fields(struct):
            kind = get_args(field.type)[0] if get_origin(field.type) is Annotated else field.type
            if get_origin(kind) is Literal:  # msgspec sorts the choices; the order in which they are declared says more
                found["$defs"][struct.__name__]["properties"][field.name]["enum"] = list(get_args(kind))
    keys["bootloader"]["enum"] = ["", *FAMILIES]
    found["$defs"]["Preflight"]["properties"]["load"]["items"]["enum"] = [*CHOICES]
    keys["knobs"]["propertyNames"] = {"enum": list(KNOBS)}
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "hostfile.schema.json"}
    return {**head, "title": "The host file of tunectl", **found}
