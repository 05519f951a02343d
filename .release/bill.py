"""The bill of materials (CycloneDX): what an artefact holds that somebody else wrote."""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

from cyclonedx.factory.license import LicenseFactory
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output import make_outputter
from cyclonedx.schema import OutputFormat, SchemaVersion
from packageurl import PackageURL

from tunectl.installed import DISTRIBUTION

# What classifiers call a licence -> SPDX, as those mean it that name no other.
_SPDX = {"MIT License": "MIT", "BSD License": "BSD-3-Clause"}
_LIBC = "ziglang/lib/libc/musl/src/internal/version.h"


def _component(name: str, version: str, kind: str, license_text: str, what: str = "") -> Component:
    return Component(
        name=name,
        version=version,
        type=ComponentType.APPLICATION if kind == "application" else ComponentType.LIBRARY,
        purl=None if kind == "application" else PackageURL(kind, None, name, version),
        bom_ref=f"{name}@{version}",
        description=what or None,
        licenses=[LicenseFactory().make_from_string(license_text)] if license_text else (),
    )


def linked() -> list[Component]:
    """What zig links into tunectl-probe."""
    zig = metadata.distribution("ziglang")
    musl = Path(str(zig.locate_file(_LIBC))).read_text().split('"')[1]
    return [
        _component("musl", musl, "generic", "MIT", "the C library that tunectl-probe is linked with"),
        _component("compiler_rt", zig.version, "generic", "MIT", "zig's compiler runtime, linked into tunectl-probe"),
    ]


def bundled(packages: Path) -> list[Component]:
    """The distributions in a site-packages directory, tunectl itself left out."""
    found = sorted(metadata.distributions(path=[str(packages)]), key=lambda one: one.name.lower())
    return [
        _component(one.name.lower(), one.version, "pypi", license_of(one)) for one in found if one.name != DISTRIBUTION
    ]


def license_of(one: metadata.Distribution) -> str:
    """The licence as the distribution names it, in few words."""
    fields = one.metadata.json
    said = str(fields.get("license_expression") or fields.get("license") or "")
    kinds = [str(text) for text in fields.get("classifier", ()) if str(text).startswith("License ::")]
    names = (text.rpartition(" :: ")[2] for text in kinds)
    classified = " AND ".join(_SPDX.get(name, name) for name in names)
    return said if said and "\n" not in said else classified or "see its own files"


def of_all(packages: Path) -> str:
    """The licence of a whole package, as an SPDX expression: ours, and each of what is linked and bundled."""
    said = ["Apache-2.0", "MIT", *map(license_of, metadata.distributions(path=[str(packages)]))]
    each = {f"({text})" if " OR " in text else text for one in said for text in one.split(" AND ")}
    return " AND ".join(sorted(each))


def write(path: Path, version: str, parts: Iterable[Component], epoch: int) -> None:
    """The document, of which two runs have the same bytes."""
    whole = _component("tunectl", version, "generic", "Apache-2.0")  # PyPI's tunectl is another project's
    probe = _component(
        "tunectl-probe", version, "application", "Apache-2.0", "tunectl's native program, linked statically"
    )
    bom = Bom(serial_number=uuid.uuid5(uuid.NAMESPACE_URL, f"tunectl/{version}/{path.name}"))
    bom.metadata.timestamp = datetime.datetime.fromtimestamp(epoch, datetime.UTC)
    bom.metadata.component = whole
    parts = list(parts)
    for one in (probe, *parts):
        bom.components.add(one)
    of_probe = [one for one in parts if one.name in ("musl", "compiler_rt")]
    bom.register_dependency(whole, [probe, *(one for one in parts if one not in of_probe)])
    bom.register_dependency(probe, of_probe)
    text = make_outputter(bom, OutputFormat.JSON, SchemaVersion.V1_6).output_as_string(indent=2)
    path.write_text(text + "\n")
