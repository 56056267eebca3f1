"""The command line: quick where it answers from lists, and one clear line for whatever is wrong."""

from __future__ import annotations

import itertools
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from bench import LLPBench, Result, arguments, dedent, start

from llpbench.cli.main import cli, main
from llpbench.results.journal import FILE, Journal, read
from llpbench.running.settings import OPTIONS

HEAVY = {"torch", "ray", "pydantic", "pandas", "pyarrow", "requests", "sklearn", "seaborn", "scipy", "filelock"}
HEAVY |= {"optuna", "openml", "matplotlib"}


def one_line(result: Result) -> str:
    """The message of a command that could not be understood."""
    assert result.code == 2
    assert result.out == ""
    assert result.err.startswith("llpbench: ")
    assert result.err.count("\n") == 1
    return result.err


# Quick answers


def test_lists_and_help_import_nothing_heavy() -> None:
    code = """
        import sys
        from llpbench.cli.main import main

        kinds = ("methods", "datasets", "suites", "baggings", "encoders", "studies")
        commands = (["--help"], ["run", "--help"], ["--version"], ["data", "list"], *(["list", kind] for kind in kinds))
        for words in commands:
            sys.argv[1:] = words
            try:
                main()
            except SystemExit as ended:
                assert not ended.code
            print("loaded", *sys.modules)
    """
    done = subprocess.run([sys.executable, "-c", dedent(code)], capture_output=True, text=True, check=True)
    loaded = [set(line.split()) for line in done.stdout.splitlines() if line.startswith("loaded ")]
    assert len(loaded) == 10
    assert "llpbench.cli.main" in loaded[0]
    assert [modules & HEAVY for modules in loaded] == [set()] * 10


def test_help_names_every_option_and_its_default(llpbench: LLPBench) -> None:
    result = llpbench("run", "--help")
    text = " ".join(result.out.split())
    assert result.code == 0
    assert all(f"--{name} " in f"{text} " for name, option in OPTIONS.items() if option.form in ("value", "many"))
    assert all(f"--{name} /" in text for name, option in OPTIONS.items() if option.form == "switch")
    assert "--space" not in text, "is only in the file"
    assert "[default: 256]" in text
    assert "[default: fine,coarse]" in text, "as the command line takes it"
    assert "False" not in text


def commands(group: click.Group, *before: str) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    for name, command in group.commands.items():
        yield (*before, name), command
        if isinstance(command, click.Group):
            yield from commands(command, *before, name)


@pytest.mark.parametrize(("words", "command"), [pytest.param(*each, id=" ".join(each[0])) for each in commands(cli)])
def test_help_begins_with_two_examples_and_groups_many_options(
    words: tuple[str, ...], command: click.Command, llpbench: LLPBench
) -> None:
    text = llpbench(*words, "--help").out
    _, first, *rest = text.split("\n\n")
    heading, *examples = first.splitlines()
    assert heading == "Examples:"
    assert len(examples) == 2
    assert all(shlex.split(example)[0].startswith(("llpbench", "eval")) for example in examples)
    options = [param for param in command.params if isinstance(param, click.Option)]
    if len(options) > 10:
        last = rest[-1].splitlines()
        assert last[0] == "Options:"
        assert [line.split()[0] for line in last[1:]] == ["-h,"], "every option has a group"


@pytest.mark.parametrize(("words", "command"), [pytest.param(*each, id=" ".join(each[0])) for each in commands(cli)])
def test_examples_can_be_parsed(words: tuple[str, ...], command: click.Command) -> None:
    for example in getattr(command, "examples", ()):
        given = shlex.split(example.partition(" | ")[0].removeprefix('eval "$(').removesuffix(')"'))
        assert given[: 1 + len(words)] == ["llpbench", *words]
        if not isinstance(command, click.Group):
            command.make_context("example", given[1 + len(words) :])


def test_list_alone_names_what_can_be_listed(llpbench: LLPBench, plugin: Path) -> None:
    """One line of each kind, with their number."""
    told = [llpbench("list", *more).out.splitlines() for more in ((), ("--plugin", str(plugin)))]
    kinds = ["methods", "datasets", "suites", "baggings", "encoders", "studies", "params"]
    assert [[line.split()[2] for line in lines] for lines in told] == [kinds, kinds]
    assert int(told[0][0].split()[3]) < int(told[1][0].split()[3])


def test_lists_show_what_plugins_register(llpbench: LLPBench, plugin: Path) -> None:
    out = llpbench("list", "methods", "--plugin", str(plugin)).out
    assert "dllp" in out
    assert "Ardehaly & Culotta 2017" in out
    assert "quick-b" in out
    assert "floor" in out
    assert "tiny" in llpbench("list", "datasets", "--plugin", str(plugin)).out
    assert "date, carrier+dest" in llpbench("list", "datasets").out
    assert "ordered" in llpbench("list", "baggings").out
    assert "saint" in llpbench("list", "encoders").out


# Runs


def test_run_prints_leaderboards_and_says_where_they_are(llpbench: LLPBench, plugin: Path, tmp_path: Path) -> None:
    result = llpbench(*arguments(plugin, tmp_path))
    assert result.code == 0
    assert "quick-a" in result.out
    assert "started quick-a on tiny ordered 8 (2 seeds)" in result.err
    assert "8/8 runs" in result.err
    assert result.err.endswith(f"page: {tmp_path / 'index.html'}\n")


def test_a_wrong_declaration_is_reported_before_it_runs(llpbench: LLPBench, plugin: Path, tmp_path: Path) -> None:
    mine = tmp_path / "misspelt.py"
    mine.write_text(
        dedent("""
        from dataclasses import dataclass
        from typing import Annotated
        from llpbench import DirectParams, Uniform, register_method
        from llpbench.methods.bag_share import BagShare

        @dataclass(frozen=True)
        class OwnParams(DirectParams):
            weight: Annotated[float, Uniform(0.1, 1.0)] = 5.0

        @register_method("misspelt", reference="Doe 2026")
        class Misspelt(BagShare):
            "Never fits by its own."

            Params = OwnParams

            def fitt(self): ...
        """)
    )
    words = arguments(plugin, tmp_path / "out", "--plugin", str(mine), "--methods", "misspelt,quick-a")
    hook = "method 'misspelt': 'fitt' is not a hook and would never be called. Did you mean fit?"
    default = "method 'misspelt': hyperparameter 'weight': default 5.0 is outside its range 0.1 to 1"
    planned, ran = llpbench(*words, "--dry-run"), llpbench(*words)
    for told in (hook, default):
        assert f"warning: {told}\n" in planned.out
        assert told in " ".join(ran.err.split())
    assert "quick-a': " not in planned.out


def test_failures_are_reported_with_their_reason_and_exit_1(llpbench: LLPBench, plugin: Path, tmp_path: Path) -> None:
    result = llpbench(*arguments(plugin, tmp_path, "--methods", "quick-a,broken"))
    assert result.code == 1
    assert "failed broken on tiny ordered 8 (2 seeds)" in result.err
    assert "ValueError: no luck" in result.err
    assert "Traceback" in result.err, "of the debug executor"


def test_where_every_run_fails_there_is_its_reason_and_no_board(
    llpbench: LLPBench, plugin: Path, tmp_path: Path
) -> None:
    result = llpbench(*arguments(plugin, tmp_path, "--methods", "broken"))
    assert result.code == 1
    assert result.out.startswith("Failed: broken on tiny 8, seeds 0, 1: ValueError: no luck (tiny_bench.py:")
    assert "No run has a result, so there is no board." in result.out
    assert "selected by" not in result.out


def test_a_dry_run_is_the_plan_and_writes_nothing(llpbench: LLPBench, plugin: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = arguments(plugin, out, "--bag-sizes", "8,41")
    dry = llpbench(*words, "--dry-run")
    assert dry.code == 0
    assert "quick-a on tiny ordered 8 " in dry.out
    assert "impossible: bag size 41 is larger than the 40 validation rows of 'tiny'." in dry.out
    assert dry.out.endswith("4 runs to do in 2 cells, 4 impossible; less than a second one after the other\n")
    assert llpbench("plan", *words[1:]).out == dry.out
    assert not out.exists()


def test_a_config_file_stands_for_flags(llpbench: LLPBench, plugin: Path, tmp_path: Path) -> None:
    config = tmp_path / "bench.toml"
    config.write_text(
        f'plugin = "{plugin}"\nout = "{tmp_path}/out"\ndatasets = "tiny"\nmethods = "quick-a"\n'
        'bag-sizes = [8, 16]\nseeds = 2\nexecutor = "debug"\nset.quick-a.seconds = 0.01\n'
    )
    assert llpbench("run", "--config", str(config), "--seeds", "1").code == 0
    records = read(tmp_path / "out" / FILE).records.values()
    assert {(record["seed"], record["spec"]["params"]["seconds"]) for record in records} == {(0, 0.01)}


def test_report_rebuilds_what_a_run_wrote(llpbench: LLPBench, plugin: Path, tmp_path: Path) -> None:
    written = llpbench(*arguments(plugin, tmp_path))
    page = (tmp_path / "README.md").read_text()
    (tmp_path / "README.md").unlink()
    with (tmp_path / FILE).open("ab") as file:
        file.write(b'{"schema":1,"ru')
    result = llpbench("report", "--no-plots", "--out", str(tmp_path))
    assert result.code == 0
    assert result.out == written.out
    assert "the last line of" in result.err
    parts = (tmp_path / "README.md").read_text().split("\n\n")
    assert "\n\n".join(part for part in parts if not part.startswith("- **The last line of")) == page


def test_data_commands(llpbench: LLPBench, plugin: Path) -> None:
    from_plugin = ("--plugin", str(plugin))
    listed = llpbench("data", "list", *from_plugin)
    assert listed.code == 0
    assert "tiny" in listed.out
    fetched = llpbench("data", "fetch", "absent,tiny", *from_plugin)
    assert fetched.code == 1
    assert "tiny: " in fetched.out
    assert fetched.err.startswith("llpbench: dataset 'absent' has no file")
    verified = llpbench("data", "verify", "tiny", *from_plugin)
    assert verified.code == 0
    assert "ok" in verified.out
    assert llpbench("data", "verify", "tiny,absent", *from_plugin).code == 1


# Bad input: the readers' own cases stand in test_settings.py, names in test_planning.py, files in test_journal.py


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["run", "--methods", "dlp"], "unknown method 'dlp'. Did you mean dllp"),
        (["plan", "--datasets", "adlut"], "unknown dataset 'adlut'. Did you mean adult"),
        (["run", "--bag-sizes", "-64"], "--bag-sizes must be positive whole numbers"),
        (
            ["plan", "--bag-sizes", "4885", "--methods", "dllp"],
            "bag size 4885 is larger than the 4,884 validation rows",
        ),
        (["run", "--config", "/none.toml"], "--config '/none.toml' cannot be read: No such file or directory"),
        (["run", "--preset", "slow"], "unknown preset 'slow'"),
        (["check", "dllp", "--dataset", "adult"], "--dataset needs a bagging to check, but 'dllp' has none"),
        (["run", "--out", "/dev/null/x"], "journal '/dev/null/x/journal.jsonl' cannot be read: Not a directory"),
        (["run", "--plugin", "/none.py"], "plugin '/none.py' is not a file"),
        (["rnu"], "Did you mean run?"),
        (["data", "fech"], "Did you mean fetch?"),
        (["run", "--bag-sizes", "64,1"], "--bag-sizes must be 2 or more"),
        (["list", "studies", "dllp"], "only list params takes the name"),
        (["report", "--plots", "pictures", "--no-plots"], "--plots and --no-plots"),
        (["effects", "--seed", "-1"], "-1 is not in the range x>=0"),
        (["run", "--out", "~nobody-of-that-name/x"], "'~nobody-of-that-name/x'"),
        (["run", "--nonsense"], "--nonsense"),
        (["run", "more"], "Got unexpected extra argument (more)"),
        (["list", "colours"], "'colours' is not one of"),
        (["report", "--out", "/none"], "there is no journal '/none'"),
        (["data", "verify", "adlut"], "unknown dataset 'adlut'"),
        (["data", "list", "--data-dir", "/none"], "data directory '/none'"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(llpbench: LLPBench, words: list[str], message: str) -> None:
    assert message in one_line(llpbench(*words))


def test_a_bad_plugin_is_one_line_of_every_command(llpbench: LLPBench, tmp_path: Path) -> None:
    path = tmp_path / "bad_plugin.py"
    path.write_text("raise RuntimeError('two\\nlines')")
    for words in (["run"], ["plan"], ["list", "methods"], ["data", "list"]):
        assert "failed on import: RuntimeError: two lines" in one_line(llpbench(*words, "--plugin", str(path)))


def test_a_strangers_journal_is_one_line(llpbench: LLPBench, plugin: Path, tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("name,age\n")
    for words in (
        arguments(plugin, tmp_path),
        ["plan", *arguments(plugin, tmp_path)[1:]],
        ["report", "--out", str(tmp_path)],
    ):
        assert "is not a journal of llpbench" in one_line(llpbench(*words))


def test_two_runs_on_one_folder_do_not_mix(llpbench: LLPBench, plugin: Path, tmp_path: Path) -> None:
    with Journal(tmp_path):
        assert "another llpbench is writing to" in one_line(llpbench(*arguments(plugin, tmp_path)))
    assert llpbench(*arguments(plugin, tmp_path)).code == 0


def test_an_error_of_ours_keeps_its_traceback(llpbench: LLPBench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("llpbench.cli.main.resolve", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        main_with(monkeypatch, "run")
    assert llpbench


def main_with(monkeypatch: pytest.MonkeyPatch, *words: str) -> None:
    monkeypatch.setattr(sys, "argv", ["llpbench", *words])
    main()


@pytest.mark.parametrize(("words", "saved"), [((), True), (("--dry-run",), False)])
def test_only_a_run_that_was_interrupted_has_saved_work(
    words: tuple[str, ...], saved: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("llpbench.cli.main.resolve", interrupt)
    with pytest.raises(SystemExit) as end:
        main_with(monkeypatch, "run", *words)
    assert end.value.code == 130
    assert ("saved" in capsys.readouterr().err) == saved


# Processes


def test_interrupted_it_exits_130_and_says_how_to_go_on(plugin: Path, tmp_path: Path) -> None:
    process = start(arguments(plugin, tmp_path, "--set", "quick-a.seconds=0.3", "--set", "quick-b.seconds=0.3"))
    while process.poll() is None and not read(tmp_path / FILE).records:
        time.sleep(0.02)
    signals = itertools.cycle((signal.SIGINT, signal.SIGTERM))
    while process.poll() is None:  # again and again, to its very end
        process.send_signal(next(signals))
        time.sleep(0.01)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert err.splitlines()[-1].startswith("llpbench: ")
    assert "Traceback" not in err
    assert out == ""
    assert 0 < len(read(tmp_path / FILE).records) < 8
