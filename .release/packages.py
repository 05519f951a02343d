"""A .deb or .rpm of what was laid out, by nFPM."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import bill
import stage
from stage import Edition
from targets import ARCHITECTURES, HERE, run

# nFPM's name of each maintainer script, and ours for each packager.
_SCRIPTS = {
    "deb": {"postinstall": "deb-postinst", "preremove": "deb-prerm", "postremove": "deb-postrm"},
    "rpm": {"postinstall": "rpm-post", "preremove": "rpm-preun", "postremove": "rpm-postun"},
}
_DESCRIPTION = """Linux host tuning and verification for low-latency trading
tunectl isolates CPUs, moves interrupts and kernel work away from them, sets
the governor and the idle states, and reads every value back. A native probe
measures what a spinning thread feels on those CPUs. Every setting that is not
in force is named, with the reason and the fix, and restore takes back every
change to the byte."""


def build(out: Path, work: Path, nfpm: Path, edition: Edition) -> None:
    """The package of one system and machine, in `out`."""
    root = work / "root"
    stage.lay_out(root, edition)
    settings = work / "nfpm.yaml"
    settings.write_text(json.dumps(_settings(root, work, edition), indent=2))  # JSON is YAML
    run([str(nfpm), "package", "-f", str(settings), "-p", edition.system.packager, "-t", str(out)], work)


def _settings(root: Path, work: Path, edition: Edition) -> dict[str, Any]:
    system = edition.system
    moment = datetime.datetime.fromtimestamp(edition.epoch, datetime.UTC).isoformat().replace("+00:00", "Z")
    news = work / "changelog.yaml"
    news.write_text(json.dumps(_news(edition, moment)))
    return {
        "name": "tunectl",
        "arch": ARCHITECTURES[edition.machine],
        "platform": "linux",
        "version": edition.version,
        "version_schema": "none",
        "release": system.revision,
        "section": "admin",
        "priority": "optional",
        "maintainer": stage.maintainer(),
        "description": _DESCRIPTION,
        "license": bill.of_all(stage.packages_in(root, system)),
        "mtime": moment,
        "changelog": str(news),
        "depends": list(system.depends),
        "deb": {"predepends": list(system.needs_first)},
        "suggests": ["stress-ng"],
        "overrides": {"deb": {"recommends": ["procps"]}},  # systemctl reload tunectl-monitor calls kill
        "contents": _contents(root, system.packager),
        "scripts": {event: str(_script(work, name)) for event, name in _SCRIPTS[system.packager].items()},
        "rpm": {
            "buildhost": "localhost",
            "group": "System Environment/Base",
            "summary": _DESCRIPTION.partition("\n")[0],
        },
    }


def _news(edition: Edition, moment: str) -> list[dict[str, Any]]:
    """One entry, as both package managers want one; ours is changelog.gz."""
    note = {"note": "changelog.gz says what is new."}
    version = f"{edition.version}-{edition.system.revision}"
    return [
        {
            "semver": version,
            "date": moment,
            "packager": stage.maintainer(),
            "changes": [note],
            "deb": {"urgency": "medium", "distributions": [edition.system.name]},
        }
    ]


def _contents(root: Path, packager: str) -> list[dict[str, Any]]:
    """Everything below /usr as it is; rpm wants to know what is documentation, dpkg knows it by its place."""
    example = "/etc/tunectl/host.toml.example"
    contents: list[dict[str, Any]] = [
        {"dst": "/etc/tunectl", "type": "dir", "file_info": {"mode": 0o755}},
        {"src": str(root / example[1:]), "dst": example, "type": "config|noreplace", "file_info": {"mode": 0o644}},
    ]
    if packager == "rpm":
        for number, place in enumerate((stage.DOCUMENTS, "usr/share/man")):
            documents = (root / place).rename(root / f"documents{number}")
            for path in sorted(path for path in documents.rglob("*") if path.is_file()):
                contents.append({"src": str(path), "dst": f"/{place}/{path.relative_to(documents)}", "type": "doc"})
    return [*contents, {"src": str(root / "usr"), "dst": "/usr", "type": "tree"}]


def _script(work: Path, name: str) -> Path:
    """A maintainer script: the functions that all share, and its own part."""
    path = work / name
    path.write_text((HERE / "scripts/stands.sh").read_text() + (HERE / "scripts" / name).read_text())
    return path
