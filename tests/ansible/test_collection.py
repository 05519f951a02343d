"""The collection as a whole: installed both ways, linted, documented; with time, ansible-test sanity."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.ansible.conftest import program
from tests.ansible.units import COLLECTION, ROOT

# What an installed collection has to hold, whichever way it came.
NEEDED = {
    ".ansible-lint",
    "LICENSE",
    "MANIFEST.json",
    "README.md",
    "meta/runtime.yml",
    "playbooks/provision.yml",
    "playbooks/reboot.yml",
    "plugins/filter/unknown_variables.py",
    "plugins/modules/tunectl.py",
    "plugins/module_utils/outcome.py",
    "roles/tunectl_install/files/look.py",
    "roles/tunectl_tune/meta/argument_specs.yml",
}
KEPT_OUT = {"ansible.cfg", "tests"}
GET_PIP = '"""Stands in for get-pip.py: the pip that this Python brings."""\nimport ensurepip\nensurepip.bootstrap()\n'


@pytest.fixture
def run(environment: dict[str, str]) -> object:
    """Runs a program to its end, which has to be a good one; returns what it said."""

    def call(*words: object, cwd: Path | None = None, env: dict[str, str] | None = None) -> str:
        done = subprocess.run(
            [program(str(words[0])) if str(words[0]).startswith("ansible") else str(words[0]), *map(str, words[1:])],
            env={**environment, **(env or {})},
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=900,
        )
        assert done.returncode == 0, done.stdout
        return done.stdout

    return call


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """This tree's collection in a repository of the project's shape."""
    root = tmp_path / "repository"
    ignore = shutil.ignore_patterns("__pycache__", ".ansible")
    shutil.copytree(COLLECTION, root / "ansible", ignore=ignore)
    (root / "roles").symlink_to("ansible/roles")
    (root / "tunectl").mkdir()
    (root / "tunectl/__init__.py").touch()
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.com")
    for words in (("init", "-q"), ("add", "-A"), (*identity, "commit", "-qm", "x")):
        subprocess.run(["git", *words], cwd=root, check=True)
    return root


def held(folder: Path) -> set[str]:
    """The files of the installed collection; none of them is a link that leads nowhere."""
    root = folder / "ansible_collections/tunectl/host"
    found = {path for path in root.rglob("*") if not path.is_dir()}
    assert all(path.exists() for path in found)
    return {str(path.relative_to(root)) for path in found}


@pytest.mark.slow
def test_it_is_installed_from_the_repository_and_from_an_archive(run, repository: Path, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    run("ansible-galaxy", "collection", "build", repository / "ansible", "--output-path", tmp_path)
    (archive,) = tmp_path.glob("tunectl-host-*.tar.gz")
    assert archive.stat().st_size < 100_000
    sources = {"archive": archive, "git": f"git+file://{repository}", "folder": repository}
    contents = {}
    for name, source in sources.items():
        there = {"ANSIBLE_COLLECTIONS_PATH": str(tmp_path / name)}
        run("ansible-galaxy", "collection", "install", source, "-p", tmp_path / name, env=there)
        contents[name] = held(tmp_path / name)
    assert contents["archive"] >= NEEDED
    assert not [path for path in contents["archive"] if path.startswith(tuple(KEPT_OUT))]
    assert contents["git"] == contents["folder"] == contents["archive"]


def test_what_galaxy_asks_for_is_there() -> None:
    """Addresses that a reader can follow, a licence that is the project's, and a README for the collection."""
    yaml = pytest.importorskip("yaml", reason="Ansible is not installed: pip install -e '.[test]'")
    galaxy = yaml.safe_load((COLLECTION / "galaxy.yml").read_text())
    for key in ("repository", "issues", "homepage", "documentation"):
        assert galaxy[key].startswith("https://"), key
        assert "example." not in galaxy[key], key
    assert galaxy["license"] == ["Apache-2.0"]
    assert (COLLECTION / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()
    assert (COLLECTION / galaxy["readme"]).exists()


@pytest.mark.slow
def test_ansible_doc_explains_the_module_and_the_roles(run) -> None:  # type: ignore[no-untyped-def]
    module = json.loads(run("ansible-doc", "-j", "tunectl.host.tunectl"))["tunectl.host.tunectl"]
    assert module["doc"]["options"]["command"]["required"] is True
    assert module["examples"]
    assert "reboot_required" in module["return"]
    roles = json.loads(run("ansible-doc", "-j", "-t", "role", "-l", "tunectl.host"))
    assert {f"tunectl.host.{path.name}" for path in (COLLECTION / "roles").iterdir()} <= roles.keys()


def test_ansible_lint_has_the_production_profile_and_no_exceptions() -> None:
    settings = (COLLECTION / ".ansible-lint").read_text()
    assert "profile: production" in settings
    assert "skip_list" not in settings
    assert "warn_list" not in settings
    noqa = [path for path in COLLECTION.rglob("*.yml") if "noqa" in path.read_text()]
    assert not noqa


@pytest.mark.slow
def test_every_playbook_is_understood(run) -> None:  # type: ignore[no-untyped-def]
    names = sorted(path.stem for path in (COLLECTION / "playbooks").glob("*.yml"))
    run("ansible-playbook", "--syntax-check", "-i", "tunectl,", *(f"tunectl.host.{name}" for name in names))


@pytest.mark.long
def test_ansible_lint_is_silent_with_the_production_profile(run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    program("ansible-lint")
    run("ansible-lint", "--nocolor", cwd=COLLECTION, env={"XDG_CACHE_HOME": str(tmp_path), "HOME": str(tmp_path)})


@pytest.mark.long
def test_ansible_lint_is_silent_on_the_installed_copy(run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    """Our .ansible-lint comes with it: it names the oldest Ansible, which the linter by itself knows no more."""
    run("ansible-galaxy", "collection", "build", COLLECTION, "--output-path", tmp_path)
    (archive,) = tmp_path.glob("*.tar.gz")
    there = {"ANSIBLE_COLLECTIONS_PATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path), "HOME": str(tmp_path)}
    run("ansible-galaxy", "collection", "install", archive, "-p", tmp_path, env=there)
    copy = tmp_path / "ansible_collections/tunectl/host"
    run("ansible-lint", "--nocolor", "--profile", "production", cwd=copy, env=there)


@pytest.mark.long  # and asks PyPI
def test_ansible_test_sanity_is_silent(run, repository: Path, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    """ansible-test wants a tree of a certain shape, and a get-pip.py from a site that may be out of reach."""
    tree = tmp_path / "ansible_collections/tunectl/host"
    tree.parent.mkdir(parents=True)
    (repository / "ansible").rename(tree)
    for words in (("init", "-q"), ("add", "-A")):
        subprocess.run(["git", *words], cwd=tree, check=True)
    cache = tmp_path / "home/.ansible/test/cache"
    cache.mkdir(parents=True)
    for version in ("20_3_4", "21_3_1", "23_1_2", "24_2", "25_0_1"):
        (cache / f"get_pip_{version}.py").write_text(GET_PIP)
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    options = ("--color", "no", "--python", python, "--requirements")
    run("ansible-test", "sanity", *options, cwd=tree, env={"HOME": str(tmp_path / "home"), "LC_ALL": "en_US.UTF-8"})
