"""What the roles promise: typed variables, whose defaults are those of the files, and no fact about Linux."""

import re
from pathlib import Path
from typing import Any

import pytest

import tunectl
from tests.ansible.generate import without_words
from tests.ansible.units import COLLECTION, ROOT, load

yaml = pytest.importorskip("yaml", reason="Ansible is not installed: pip install -e '.[test]'")
ROLES = sorted((COLLECTION / "roles").iterdir())
hostfile = load("hostfile")


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


def entry_points(role: Path) -> dict[str, dict[str, Any]]:
    return {
        name: spec.get("options", {}) for name, spec in read(role / "meta/argument_specs.yml")["argument_specs"].items()
    }


def test_the_roles_lie_where_the_architecture_says() -> None:
    assert sorted((ROOT / "roles").iterdir()) == [ROOT / "roles" / role.name for role in ROLES]
    assert [role.name.removeprefix("tunectl_") for role in ROLES] == [
        "install",
        "monitor",
        "preflight",
        "probe",
        "restore",
        "tune",
    ]


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)
def test_every_default_is_declared_with_its_value(role: Path) -> None:
    declared: dict[str, Any] = {}
    for options in entry_points(role).values():
        declared |= {name: spec["default"] for name, spec in options.items() if "default" in spec}
    declared = {name: value for name, value in declared.items() if not name.startswith("tunectl_host_")}
    assert read(role / "defaults/main.yml") == declared


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)
def test_main_is_a_table_of_contents(role: Path) -> None:
    words = {"ansible.builtin.import_tasks", "ansible.builtin.include_tasks", "ansible.builtin.import_role"}
    named = []
    for task in read(role / "tasks/main.yml"):
        (word,) = words & task.keys()
        given = task[word] if isinstance(task[word], dict) else {"file": task[word]}
        whose = role.with_name(given["name"].removeprefix("tunectl.host.")) if "name" in given else role
        named.append(whose / "tasks" / (given.get("file") or f"{given['tasks_from']}.yml"))
        assert task["tags"][0] == role.name
    assert all(path.exists() for path in named)
    assert (role / "README.md").exists()


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)
def test_the_readmes_example_has_variables_that_the_roles_know(role: Path) -> None:
    """Its table is made from meta/argument_specs.yml (test_hostfile.py compares); its example is written by hand."""
    (example,) = re.findall(r"```yaml\n(.*?)```", (role / "README.md").read_text(), re.DOTALL)
    ((play,),) = [yaml.safe_load(example)]
    ((used),) = play["roles"]
    known = {name for one in ROLES for options in entry_points(one).values() for name in options}
    assert used.pop("role") == f"tunectl.host.{role.name}"
    assert used
    assert used.keys() <= known


def test_no_role_knows_linux() -> None:
    knob = re.compile(r"/(proc|sys)(/|\b)|isolcpus|governor|nohz|rcu_|cpuidle|sysctl")
    for role in ROLES:
        for path in role.rglob("*.yml"):
            code = "\n".join(line for line in path.read_text().splitlines() if not line.strip().startswith("#"))
            assert not knob.search(code), path


def test_the_role_and_the_module_have_the_same_options() -> None:
    points = entry_points(COLLECTION / "roles/tunectl_tune")
    for name in ("main", "input", "configure"):
        of_host = {key: spec for key, spec in points[name].items() if key.startswith("tunectl_host_")}
        short = {key.removeprefix("tunectl_host_"): spec for key, spec in of_host.items()}
        assert without_words(short, "options") == hostfile.OPTIONS
    passed_on = read(COLLECTION / "roles/tunectl_tune/vars/main.yml")["tunectl_tune_host"]
    assert passed_on == {key: f"{{{{ tunectl_host_{key} | default(omit) }}}}" for key in hostfile.OPTIONS}


def test_the_modules_documentation_has_the_same_options() -> None:
    source = (COLLECTION / "plugins/modules/tunectl.py").read_text()
    documentation = yaml.safe_load(source.split('DOCUMENTATION = r"""')[1].split('"""')[0])
    assert without_words(documentation["options"]["host"]["suboptions"], "suboptions") == hostfile.OPTIONS


def test_the_collection_has_the_version_of_tunectl() -> None:
    """As Galaxy wants it (Semantic Versioning, which sorts rc.2 before rc.10): 1.0.0-rc.1 for 1.0.0rc1."""
    version = re.sub(r"(a|b|rc)(\d+)$", r"-\1.\2", tunectl.__version__)
    assert read(COLLECTION / "galaxy.yml")["version"] == version
    assert f"\n## {version}\n" in (COLLECTION / "CHANGELOG.md").read_text()


@pytest.mark.parametrize("name", ["inventory/example/group_vars/tunectl.yml", "roles/tunectl_install/README.md"])
def test_the_examples_name_the_wheel_of_this_version(name: str) -> None:
    text = (COLLECTION / name).read_text()
    assert set(re.findall(r"/tunectl_host-(\w[\w.]*)-py3-", text)) == {tunectl.__version__}
