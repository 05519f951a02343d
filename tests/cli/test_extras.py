"""What an installation without the extras can do: everything else, and one clear line for what it cannot."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.ran import Ran
from tunectl.installed import EXTRAS

WITHOUT = ("show", "plan", "verify", "verify --format json", "verify --format nagios", "check --window 0.1", "knobs",
           "knobs --format markdown", "propose", "propose --format toml", "apply --yes", "restore --yes",
           "monitor --once", "preflight --duration 0.1", "fleet --help")  # fmt: skip
NEED = [
    ("verify --format junit", "the format junit", "junitparser", "report"),
    ("preflight --format junit", "the format junit", "junitparser", "report"),
    ("check --format prometheus", "the format prometheus", "prometheus_client", "prometheus"),
    ("report {place}/before.json -o {place}/page.html", "the format html", "jinja2", "report"),
    ("report {place}/before.json --format html", "the format html", "jinja2", "report"),
    ("fleet report --save --store {place}", "the format html", "jinja2", "report"),
    ("fleet keep {place} --store {place}/store", "the fleet's store in columns", "duckdb", "fleet"),
    ("monitor --duration 1", "[monitor.prometheus]", "prometheus_client", "prometheus"),
]
BRINGS = {
    "report": "'jinja2>=3.1.3' 'junitparser>=4.0'",
    "prometheus": "'prometheus-client>=0.21'",
    "fleet": "'duckdb>=1.4'",
}


@pytest.fixture
def bare(tunectl: Callable[..., Ran], lab4: Path, tmp_path: Path) -> Callable[[str], Ran]:
    """tunectl on a recorded host, where Python finds none of the extras' modules."""
    stubs = tmp_path / "stubs"
    stubs.mkdir()
    for name in EXTRAS:
        (stubs / f"{name}.py").write_text(f"raise ModuleNotFoundError('no {name}', name='{name}')\n")
    variables = {"PYTHONPATH": str(stubs), "TUNECTL_ROOT": str(lab4)}
    return lambda words: tunectl(*words.format(place=tmp_path).split(), env=variables)


@pytest.mark.slow
def test_what_needs_no_extra_works_without_them(bare: Callable[[str], Ran]) -> None:
    for words in WITHOUT:
        done = bare(words)
        assert "which is not installed" not in done.err, words
        assert "internal error" not in done.err, words
        assert done.out, words


@pytest.mark.parametrize(("words", "what", "module", "extra"), NEED, ids=lambda one: str(one).partition(" {")[0])
def test_what_needs_one_names_it(
    bare: Callable[[str], Ran], lab4: Path, words: str, what: str, module: str, extra: str
) -> None:
    with (lab4 / "etc/tunectl/host.toml").open("a") as file:
        file.write('[monitor.prometheus]\nlisten = "127.0.0.1:0"\n')
    done = bare(words)
    assert (done.code, done.out) == (1, "")
    *notes, last = done.err.splitlines()
    assert len(notes) == words.startswith("monitor"), "a recorded host"
    assert last == (
        f"tunectl: {what} needs {module}, which is not installed "
        f"(it comes with the extra '{extra}': pip install {BRINGS[extra]})"
    )


def test_nothing_is_measured_before_it_is_said(bare: Callable[[str], Ran]) -> None:
    """An hour of measuring that nobody can read would be lost."""
    assert bare("preflight --duration 3600 --format junit").code == 1


def test_another_missing_module_is_not_called_an_extra() -> None:
    from tunectl.installed import needed

    with pytest.raises(ModuleNotFoundError, match="tunectl_nowhere"), needed("this"):
        __import__("tunectl_nowhere")


@pytest.mark.parametrize(("module", "words"), [("click", "--help"), ("msgspec", "plan"), ("psutil", "check")])
def test_a_broken_installation_is_one_line(
    tunectl: Callable[..., Ran], lab4: Path, tmp_path: Path, module: str, words: str
) -> None:
    (tmp_path / f"{module}.py").write_text(f"raise ModuleNotFoundError('no {module}', name='{module}')\n")
    variables = {"PYTHONPATH": str(tmp_path), "TUNECTL_ROOT": str(lab4)}
    done = tunectl(*words.split(), env=variables)
    assert (done.code, done.out) == (1, "")
    assert done.err == (
        f"tunectl: the Python package {module} is not installed, and tunectl needs it: install tunectl again\n"
    )
