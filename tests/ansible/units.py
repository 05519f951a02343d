"""The parts of the collection that need no Ansible, imported from their files."""

import importlib.util
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent
COLLECTION = ROOT / "ansible"


def load(name: str) -> Any:
    """ansible/plugins/module_utils/<name>.py"""
    path = COLLECTION / "plugins/module_utils" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"tunectl_host_{name}", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
