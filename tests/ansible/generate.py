"""The host file's keys in Ansible's words, made from the product's own schema (docs/schema/hostfile.schema.json).

`python -m tests.ansible.generate` writes them where the collection needs them: the module's arguments, its
documentation, the role's argument_specs; and the variables of each role into its README. A test compares, so a new key
of the host file is one line in tunectl/hostfile/shape.py and this command.
"""

import json
import re
import textwrap
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from tests.ansible.units import COLLECTION, ROOT

SCHEMA = ROOT / "docs/schema/hostfile.schema.json"
BEGIN, END = "# The host file's keys, from docs/schema/hostfile.schema.json: begin", "# end"
_TABLE = "<!-- The variables, from meta/argument_specs.yml: begin -->\n"
_WIDTH = 118
_CODE = re.compile(r"C[(]([^)]*)[)]")
_SCALARS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}
_PROPOSAL = "With proposal as the isolated CPUs, "
# What the module adds to the host file's keys, or has otherwise.
_OVERRIDES: dict[str, dict[str, Any]] = {
    "profile": {"required": None, "default": "low-latency"},
    "isolated": {
        "required": None,
        "default": "proposal",
        "description": [
            "The isolated CPUs in the kernel's own grammar, such as 2-7 or 4-N.",
            "With proposal the host's own host file keeps its list while that fits the host; where there is no host "
            "file yet, tunectl proposes a list.",
        ],
    },
    "bootloader": {"choices": None},  # the tunectl on the target may know more of them than this collection
}
_OWN: dict[str, dict[str, Any]] = {
    "nic": {
        "description": _PROPOSAL + "the interface that carries market data; CPUs next to it are taken.",
        "type": "str",
    },
    "count": {"description": _PROPOSAL + "how many logical CPUs to isolate, rounded up to whole cores.", "type": "int"},
    "renew": {
        "description": _PROPOSAL + "ask for a proposal even where the host file has a list already.",
        "type": "bool",
        "default": False,
    },
}


def options(inner: str) -> dict[str, Any]:
    """Every key as an Ansible option; `inner` is what the options of a table are called: options, or suboptions."""
    schema = json.loads(SCHEMA.read_text())
    found = _table(schema, schema["$defs"]["HostFile"], inner)
    for key, changes in _OVERRIDES.items():
        merged = found[key] | changes
        found[key] = {word: value for word, value in merged.items() if value is not None}
    first = {key: found.pop(key) for key in ("profile", "isolated")}
    return {**first, **_OWN, **found}


def _table(schema: dict[str, Any], table: dict[str, Any], inner: str) -> dict[str, Any]:
    required = set(table.get("required", ()))
    return {key: _option(schema, value, inner, key in required) for key, value in table["properties"].items()}


def _option(schema: dict[str, Any], value: dict[str, Any], inner: str, required: bool) -> dict[str, Any]:
    kind = _kind(schema, value)
    found: dict[str, Any] = {"description": value["description"]}
    if kind.get("type") == "array":
        element = _kind(schema, kind["items"])
        found |= {"type": "list", "elements": "dict" if "properties" in element else _SCALARS[element["type"]]}
        kind = element
    elif kind.get("type") == "object":
        found["type"] = "dict"
    else:
        found["type"] = _SCALARS[kind.get("type", "string")]
    if choices := kind.get("enum"):
        found["choices"] = choices
    if required:
        found["required"] = True
    if "properties" in kind:
        found[inner] = _table(schema, kind, inner)
    return found


def _kind(schema: dict[str, Any], value: dict[str, Any]) -> dict[str, Any]:
    """What a key is once null is left out, links are followed, and a text is taken where a number will do, too."""
    while True:
        if "$ref" in value:
            value = schema["$defs"][value["$ref"].rpartition("/")[2]]
        elif "anyOf" in value:
            kinds = [one for one in value["anyOf"] if one.get("type") != "null"]
            value = next((one for one in kinds if one.get("type") == "string"), kinds[0])
        else:
            return value


def without_words(given: dict[str, Any], inner: str) -> dict[str, Any]:
    """Options without their descriptions, in the module's form."""
    found = {}
    for name, spec in given.items():
        kept = {key: value for key, value in spec.items() if key not in ("description", inner)}
        found[name] = kept | ({"options": without_words(spec[inner], inner)} if inner in spec else {})
    return found


def _yaml(given: dict[str, Any], indent: int) -> str:
    """A mapping of options as YAML, as ansible-lint likes it."""
    pad, lines = " " * indent, []
    for name, spec in given.items():
        lines.append(f"{pad}{name}:")
        for key, value in spec.items():
            if key in ("options", "suboptions"):
                lines += [f"{pad}  {key}:", _yaml(value, indent + 4)]
            elif isinstance(value, list):
                lines.append(f"{pad}  {key}:")
                lines += [_text(f"{pad}    - ", one, indent + 6) for one in value]
            else:
                lines.append(_text(f"{pad}  {key}: ", value, indent + 4))
    return "\n".join(lines)


def _text(head: str, value: object, indent: int) -> str:
    said = str(value).lower() if isinstance(value, bool) else str(value)
    if ": " in said or said[:1] in "&*!|>'\"%@`[{":
        said = "'" + said.replace("'", "''") + "'"
    return "\n".join(textwrap.wrap(head + said, _WIDTH, subsequent_indent=" " * indent, break_on_hyphens=False))


def _python(given: dict[str, Any]) -> str:
    """The module's argument_spec, formatted as the tree is."""
    return f"OPTIONS: dict[str, Any] = {_literal(given, 0)}"


def _literal(value: Any, indent: int) -> str:
    """A literal; what fits a line stands on one."""
    flat = json.dumps(value).replace(": true", ": True").replace(": false", ": False")
    if not isinstance(value, dict | list) or len(flat) + indent < 100:
        return flat
    pad = " " * (indent + 4)
    if isinstance(value, list):
        rows = [f"{pad}{_literal(one, indent + 4)},\n" for one in value]
        return "[\n" + "".join(rows) + " " * indent + "]"
    rows = [f"{pad}{json.dumps(key)}: {_literal(one, indent + 4)},\n" for key, one in value.items()]
    return "{\n" + "".join(rows) + " " * indent + "}"


def _role() -> str:
    return _yaml({f"tunectl_host_{key}": spec for key, spec in options("options").items()}, 6)


def _variables(role: str) -> str:
    """The table of a role's variables for its README; of a key of the host file without its inner keys."""
    import yaml  # comes with Ansible, and only a README needs it

    specs = yaml.safe_load((COLLECTION / "roles" / role / "meta/argument_specs.yml").read_text())["argument_specs"]
    rows = ["", "| variable | type | default | meaning |", "|---|---|---|---|"]
    # The role's own first. Which of two merged mappings comes first differs between releases of PyYAML.
    options = specs["main"].get("options", {})
    for name, spec in sorted(options.items(), key=lambda option: option[0].startswith("tunectl_host_")):
        default = "required" if spec.get("required") else _default(spec)
        said = spec["description"] if isinstance(spec["description"], str) else " ".join(spec["description"])
        meaning = _CODE.sub(r"`\1`", said)
        rows.append(f"| `{name}` | {spec['type']} | {default} | {meaning} |")
    return "\n".join([*rows, ""])


def _default(spec: dict[str, Any]) -> str:
    if spec.get("default") in (None, ""):
        return ""
    return f"`{json.dumps(spec['default']) if not isinstance(spec['default'], str) else spec['default']}`"


PLACES: dict[Path, tuple[int, Callable[[], str]]] = {
    COLLECTION / "plugins/module_utils/hostfile.py": (0, lambda: _python(without_words(options("options"), "options"))),
    COLLECTION / "plugins/modules/tunectl.py": (6, lambda: _yaml(options("suboptions"), 6)),
    COLLECTION / "roles/tunectl_tune/meta/argument_specs.yml": (6, _role),
    **{path / "README.md": (0, partial(_variables, path.name)) for path in sorted((COLLECTION / "roles").iterdir())},
}


def written(path: Path) -> str:
    """The file's text with the block between the two marks made again."""
    indent, make = PLACES[path]
    text, pad = path.read_text(), " " * indent
    begin, end = (f"{pad}{BEGIN}\n", f"{pad}{END}\n") if path.suffix != ".md" else (_TABLE, "<!-- end -->\n")
    head, _, rest = text.partition(begin)
    _, _, tail = rest.partition(end)
    return f"{head}{begin}{make()}\n{end}{tail}"


if __name__ == "__main__":
    for place in PLACES:
        place.write_text(written(place))
