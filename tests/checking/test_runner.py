"""The runner: how a check's end becomes a finding, and what a broken check may not do."""

import ast
import inspect
import os
import runpy
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from tests.hosts.builder import build_named
from tunectl.checking.runner import Interrupted, run_checks, shipped_checks
from tunectl.errors import UsageError
from tunectl.host.sysroot import Sysroot
from tunectl.model import Finding, Outcome, Scope, Severity

pytestmark = pytest.mark.slow

SCOPE = Scope(frozenset(range(4)), frozenset({0, 1, 2}), frozenset({2, 3}), 4)


@pytest.fixture
def root(tmp_path: Path) -> Sysroot:
    return Sysroot(str(build_named(tmp_path / "host", "lab4", tuned_boot=frozenset({2, 3}))))


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    folder = tmp_path / "mine"
    folder.mkdir()
    return folder


def run(root: Sysroot, folder: Path, text: str, name: str = "test_mine.py") -> dict[str, Finding]:
    (folder / name).write_text(dedent(text))
    found = run_checks(root, SCOPE, paths=[str(folder)], window_s=0.1)
    return {finding.target: finding for finding in found}


def test_each_end_of_a_check_has_its_outcome(root: Sysroot, mine: Path) -> None:
    found = run(
        root,
        mine,
        '''
        import pytest
        from tunectl.checking import failing, unknown, unsupported

        def test_right():
            """Why it matters,
            over two lines.

            Source: nowhere.
            """

        def test_wrong():
            """Why it matters."""
            failing("it is 3", "make it 4", observed=3, desired=4)

        def test_asserted():
            assert 1 + 1 == 3, "sums are wrong"

        def test_bare():
            value = 3
            assert value == 4

        def test_absent():
            unsupported("no such thing")

        def test_blind():
            unknown("cannot look")

        def test_broken():
            {}["key"]

        def test_skipped():
            pytest.skip("not today")

        @pytest.mark.xfail(reason="known")
        def test_expected():
            assert False

        def test_said():
            pytest.fail("no good")

        def test_exits():
            raise SystemExit(3)
        ''',
    )
    outcomes = {target.removeprefix("check."): finding.outcome.value for target, finding in found.items()}
    assert outcomes == {
        "right": "compliant",
        "wrong": "drifted",
        "asserted": "drifted",
        "bare": "drifted",
        "absent": "unsupported",
        "blind": "unreadable",
        "broken": "unreadable",
        "skipped": "unsupported",
        "expected": "waived",
        "said": "drifted",
        "exits": "unreadable",
    }
    wrong = found["check.wrong"]
    assert wrong.knob == "check.wrong"
    assert (wrong.observed, wrong.desired, str(wrong.fix)) == (3, 4, "make it 4")
    assert wrong.reason == "it is 3. Why it matters"
    assert found["check.right"].reason == "Why it matters, over two lines"
    assert found["check.asserted"].reason == "sums are wrong"
    assert "assert 3 == 4" in found["check.bare"].reason
    assert found["check.broken"].reason == "check broken failed to run: KeyError: 'key'"
    assert all("\n" not in finding.reason and "Traceback" not in finding.reason for finding in found.values())


def test_a_check_says_what_it_costs_and_one_that_does_not_is_an_interrupt(root: Sysroot, mine: Path) -> None:
    found = run(
        root,
        mine,
        """
        from tunectl.checking import Severity, costs, failing

        @costs(Severity.STALL)
        def test_said():
            failing("x")

        def test_silent():
            failing("x")
        """,
    )
    assert found["check.said"].severity is Severity.STALL
    assert found["check.silent"].severity is Severity.INTERRUPT


def test_every_shipped_check_says_what_it_costs() -> None:
    trees = [ast.parse(path.read_text()) for path in shipped_checks().glob("test_*.py")]
    checks = [one for tree in trees for one in tree.body if isinstance(one, ast.FunctionDef)]
    checks = [one for one in checks if one.name.startswith("test_")]
    silent = [one.name for one in checks if "costs(" not in "".join(map(ast.unparse, one.decorator_list))]
    assert checks
    assert not silent


def test_one_instance_for_each_isolated_cpu(root: Sysroot, mine: Path) -> None:
    found = run(
        root,
        mine,
        """
        def test_cpu(isolated_cpu, host, scope, cpu_facts, settings):
            assert host.exists("proc/cmdline")
            assert isolated_cpu in scope.isolated and isolated_cpu in cpu_facts.nohz_full
            assert settings == {}
        """,
    )
    assert {target: finding.outcome.value for target, finding in found.items()} == {
        "check.cpu[2]": "compliant",
        "check.cpu[3]": "unsupported",  # offline
    }


def test_without_isolated_cpus_a_check_does_not_vanish(root: Sysroot) -> None:
    scope = Scope(SCOPE.present, SCOPE.online, frozenset(), 4)
    found = run_checks(root, scope, paths=[str(shipped_checks() / "test_interrupts.py")], window_s=0.1)
    assert [(one.target, one.outcome) for one in found] == [("check.device_interrupts", Outcome.UNSUPPORTED)]


def test_a_recorded_host_does_not_run(root: Sysroot, mine: Path) -> None:
    found = run(root, mine, "def test_window(window, threads): pass\ndef test_spin(spinner_window): pass\n")
    still = (Outcome.UNREADABLE, "the counters stand still: a recorded host does not run")
    assert {target: (one.outcome, one.reason) for target, one in found.items()} == {
        "check.window": still,
        "check.spin[2]": still,
        "check.spin[3]": (Outcome.UNSUPPORTED, "CPU 3 is offline"),
    }


def test_a_file_that_does_not_load_is_one_line_and_the_others_still_run(root: Sysroot, mine: Path) -> None:
    (mine / "test_bad.py").write_text("def broken(:\n")
    (mine / "test_worse.py").write_text("import no_such_module\ndef test_x(): pass\n")
    found = run(root, mine, "def test_good(): pass\n")
    assert found["check.good"].outcome == Outcome.COMPLIANT
    assert found["check.bad"].outcome == found["check.worse"].outcome == Outcome.UNREADABLE
    assert found["check.bad"].reason == "check bad failed to load: SyntaxError: invalid syntax"
    assert "No module named 'no_such_module'" in found["check.worse"].reason


def test_a_fixture_that_is_not_there_is_one_line(root: Sysroot, mine: Path) -> None:
    finding = run(root, mine, "def test_x(no_such_fixture): pass\n")["check.x"]
    assert finding.outcome == Outcome.UNREADABLE
    assert "no_such_fixture" in finding.reason


def test_a_check_that_stops_the_run_hides_none(root: Sysroot, mine: Path) -> None:
    found = run(
        root,
        mine,
        """
        import pytest
        def test_a(): pass
        def test_b(): pytest.exit("enough")
        def test_c(): pass
        """,
    )
    assert [finding.outcome.value for finding in found.values()] == ["compliant", "unreadable", "unreadable"]
    assert found["check.c"].reason == "the check was not run"


def test_ctrl_c_ends_the_command(root: Sysroot, mine: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(root, mine, "def test_a(): raise KeyboardInterrupt\n")


def test_a_failing_tear_down_does_not_hide_what_was_found(root: Sysroot, mine: Path) -> None:
    found = run(
        root,
        mine,
        """
        import pytest
        @pytest.fixture
        def shaky():
            yield
            raise OSError("gone")
        def test_fine(shaky): pass
        def test_wrong(shaky): assert False, "wrong"
        """,
    )
    assert found["check.fine"].reason == "check fine failed to run: OSError: gone"
    assert found["check.wrong"].outcome == Outcome.DRIFTED


@pytest.mark.parametrize("place", ["nowhere", "empty", "file.txt", "test_none.py", "mine/test_mine.py::test_other"])
def test_a_path_without_checks_is_a_usage_error(
    root: Sysroot, mine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file.txt").write_text("nothing")
    (tmp_path / "test_none.py").write_text("x = 1\n")
    (mine / "test_mine.py").write_text("def test_a(): pass\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="there are no checks at"):
        run_checks(root, SCOPE, paths=[place])


def test_what_was_found_before_an_interruption_is_kept_of_all_paths(root: Sysroot, tmp_path: Path) -> None:
    for name, text in (("first", "def test_a(): pass\n"), ("second", "def test_b(): raise KeyboardInterrupt\n")):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"test_{name}.py").write_text(text)
    with pytest.raises(Interrupted) as interrupted:
        run_checks(root, SCOPE, paths=[str(tmp_path / "first"), str(tmp_path / "second")], window_s=0.1)
    assert interrupted.value.found[0].target == "check.a"


def test_several_paths_one_name_and_a_single_function(root: Sysroot, tmp_path: Path) -> None:
    for number in (1, 2):
        (tmp_path / f"d{number}").mkdir()
        (tmp_path / f"d{number}" / "test_same.py").write_text(f"def test_a{number}(): pass\ndef test_b(): pass\n")
    paths = [str(tmp_path / "d1"), f"{tmp_path}/d2/test_same.py::test_a2"]
    found = run_checks(root, SCOPE, paths=paths)
    assert [finding.target for finding in found] == ["check.a1", "check.b", "check.a2"]


def test_nothing_of_the_users_pytest_takes_part(
    root: Sysroot, mine: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (mine / "pytest.ini").write_text("[pytest]\naddopts = --no-such-option\n")
    (mine.parent / "conftest.py").write_text("raise RuntimeError('not mine')\n")
    monkeypatch.setenv("PYTEST_ADDOPTS", "--no-such-option")
    monkeypatch.setenv("PYTEST_PLUGINS", "no_such_plugin")
    monkeypatch.chdir(mine)
    modules = set(sys.modules)
    found = run(root, mine, "import sys\ndef test_a():\n    print('out'); print('err', file=sys.stderr)\n")
    assert found["check.a"].outcome == Outcome.COMPLIANT
    assert capfd.readouterr() == ("", "")
    assert sorted(path.name for path in mine.iterdir()) == ["pytest.ini", "test_mine.py"]  # no cache, no .pyc
    assert os.environ["PYTEST_ADDOPTS"] == "--no-such-option"
    assert "PYTEST_DISABLE_PLUGIN_AUTOLOAD" not in os.environ or os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] != "1"
    assert not {name for name in set(sys.modules) - modules if "test_mine" in name}


def test_progress_reaches_the_caller_and_his_streams(
    root: Sysroot, mine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (mine / "test_mine.py").write_text("def test_a(isolated_cpu): pass\ndef test_b(window): pass\n")
    run_checks(root, SCOPE, paths=[str(mine)], window_s=0.1, on_progress=lambda text: print(text, file=sys.stderr))
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == ["check.a[2]", "check.a[3]", "check.b", "watching the host for 0.1 s"]


def test_every_shipped_check_answers_on_a_recorded_host(root: Sysroot) -> None:
    names = {finding.knob for finding in run_checks(root, SCOPE, window_s=0.1)}
    assert names == {
        "check.card_link",
        "check.clock_sync",
        "check.clocksource",
        "check.clocksource_stable",
        "check.device_interrupts",
        "check.housekeeping_starved",
        "check.ipis",
        "check.movable_threads",
        "check.nic_irq_node",
        "check.nic_node",
        "check.other_tuners",
        "check.own_services",
        "check.spinners_apart",
        "check.tick_off",
        "check.tracing",
        "check.trading_alone",
        "check.trading_bounded",
        "check.trading_collector",
        "check.trading_faults",
        "check.trading_fed",
        "check.trading_held",
        "check.trading_locked",
        "check.trading_memory_local",
        "check.trading_outranks",
        "check.trading_polls",
        "check.trading_spins",
        "check.trading_thread",
        "check.whole_core",
    }


@pytest.mark.parametrize(("least_s", "wanted"), [(0.1, Outcome.COMPLIANT), (0.101, Outcome.UNREADABLE)])
def test_silence_proves_nothing_where_the_host_was_watched_for_too_short_a_time(
    root: Sysroot, mine: Path, least_s: float, wanted: Outcome
) -> None:
    """What was seen was seen, though: only `compliant` needs the time."""
    text = f"""
        from tunectl.checking import compliant, failing, unsupported, watches

        @watches({least_s})
        def test_quiet(): pass

        @watches({least_s})
        def test_fine(): compliant("all is well")

        @watches({least_s})
        def test_loud(): failing("it is 3")

        @watches({least_s})
        def test_absent(): unsupported("no such thing")
    """
    found = run(root, mine, text)
    assert [found[f"check.{name}"].outcome for name in ("quiet", "fine")] == [wanted, wanted]
    assert (found["check.loud"].outcome, found["check.absent"].outcome) == (Outcome.DRIFTED, Outcome.UNSUPPORTED)


def test_each_shipped_check_that_watches_says_for_how_long() -> None:
    watching = {"window", "threads", "spinning", "spinner_window"}
    for path in shipped_checks().glob("test_*.py"):
        module = runpy.run_path(str(path))
        for name in (name for name in module if name.startswith("test_")):
            check = module[name]
            source = inspect.getsource(check)
            asked = ('getfixturevalue("spinning")', "subject.window")
            measures = watching & set(inspect.signature(check).parameters) or any(one in source for one in asked)
            stated = [mark.args[0] for mark in getattr(check, "pytestmark", ()) if mark.name == "watches"]
            assert bool(stated) == bool(measures), name
            assert all(0.5 <= least_s <= 2 for least_s in stated), name  # `--window` is 2 s unless it is given
