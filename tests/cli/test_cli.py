"""The command line: fast answers from lists, and one clear line for each error."""

from __future__ import annotations

import itertools
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import Mock

import click
import pandas as pd
import pytest
from bench import LLPBench, arguments, dedent, python, refused, start
from click.shell_completion import ShellComplete
from districts import counted, people

from llpbench.cli.listing import _verdict_rows
from llpbench.cli.main import _seeds, cli, main
from llpbench.conformance.checks import Check, Verdict
from llpbench.results.journal import FILE, Contents, Journal
from llpbench.running.settings import OPTIONS

HEAVY = {"torch", "ray", "pydantic", "pandas", "pyarrow", "requests", "sklearn", "seaborn", "scipy", "filelock"}
HEAVY |= {"optuna", "openml", "matplotlib"}


def test_lists_and_help_import_nothing_heavy() -> None:
    code = """
        import sys
        from llpbench.cli.main import main

        kinds = ("methods", "datasets", "suites", "baggings", "encoders", "studies")
        commands = (["--help"], ["run", "--help"], ["--version"], *(["list", kind] for kind in kinds))
        for words in commands:
            sys.argv[1:] = words
            try:
                main()
            except SystemExit as ended:
                assert not ended.code
            print("loaded", *sys.modules)
    """
    done = python(dedent(code), check=True)
    loaded = [set(line.split()) for line in done.stdout.splitlines() if line.startswith("loaded ")]
    assert len(loaded) == 9
    assert "llpbench.cli.main" in loaded[0]
    assert [modules & HEAVY for modules in loaded] == [set()] * 9


@pytest.mark.parametrize("command", ["predict", "estimate"])
def test_help_names_only_options_of_the_command(command: str, llpbench: LLPBench) -> None:
    text = llpbench(command, "--help").out
    options = re.findall(r"--[\w-]+", " ".join(re.findall(r"^  (-.*?)(?:  |$)", text, re.MULTILINE)))
    assert {*re.findall(r"--[\w-]+", text)} <= {*options}


def test_help_names_every_option_and_its_default(llpbench: LLPBench) -> None:
    result = llpbench("run", "--help")
    text = " ".join(result.out.split())
    assert result.code == 0
    assert all(f"--{name} " in f"{text} " for name, option in OPTIONS.items() if option.read.form in ("value", "many"))
    assert all(f"--{name} /" in text for name, option in OPTIONS.items() if option.read.form == "switch")
    assert "[default: 256]" in text
    assert "[default: fine,coarse]" in text, "as the command line takes it"
    assert "False" not in text
    lines = [line for line in llpbench("--help").out.splitlines() if line.startswith("  ")]
    assert {*cli.commands} <= {line.split()[0] for line in lines}, "every command is in a group"


def commands(group: click.Group, *before: str) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    for name, command in group.commands.items():
        yield (*before, name), command
        if isinstance(command, click.Group):
            yield from commands(command, *before, name)


@pytest.mark.parametrize(("words", "command"), [pytest.param(*each, id=" ".join(each[0])) for each in commands(cli)])
def test_help_has_valid_examples_and_groups(words: tuple[str, ...], command: click.Command, llpbench: LLPBench) -> None:
    text = llpbench(*words, "--help").out
    _, first, *rest = text.split("\n\n")
    heading, *examples = first.splitlines()
    assert heading == "Examples:"
    assert len(examples) == 2
    for example in getattr(command, "examples", ()):
        given = shlex.split(example.partition(" | ")[0].removeprefix('eval "$(').removesuffix(')"'))
        assert given[: 1 + len(words)] == ["llpbench", *words]
        if not isinstance(command, click.Group):
            command.make_context("example", given[1 + len(words) :])
    options = [param for param in command.params if isinstance(param, click.Option)]
    if len(options) > 10:
        last = rest[-1].splitlines()
        assert last[0] == "Options:"
        assert [line.split()[0] for line in last[1:]] == ["-h,"], "every option has a group"


def test_lists_show_what_plugins_register(llpbench: LLPBench, plugin: Path) -> None:
    kinds = ["methods", "datasets", "suites", "baggings", "encoders", "studies", "params"]
    told = [llpbench("list", *more).out.splitlines() for more in ((), ("--plugin", str(plugin)))]
    assert [[line.split()[2] for line in lines] for lines in told] == [kinds, kinds]
    assert int(told[0][0].split()[3]) < int(told[1][0].split()[3]), "their number"
    shown = {
        "methods": ("dllp", "Ardehaly & Culotta 2017", "quick-b", "floor"),
        "datasets": ("tiny", "date, carrier+dest"),
        "baggings": ("ordered",),
        "encoders": ("saint",),
    }
    for kind, texts in shown.items():
        out = llpbench("list", kind, "--plugin", str(plugin)).out
        assert all(text in out for text in texts)


@pytest.mark.parametrize("kind", ["methods", "datasets", "suites", "baggings", "encoders", "studies", "params dllp"])
def test_lists_fit_terminal_with_whole_words(kind: str, llpbench: LLPBench, monkeypatch: pytest.MonkeyPatch) -> None:
    words = []
    for columns in ("80", "400"):
        monkeypatch.setenv("COLUMNS", columns)
        out = llpbench("list", *kind.split()).out
        assert max(map(len, out.splitlines())) <= int(columns)
        words.append(out.split())
    assert words[0] == words[1]


def test_run_draws_plots_and_names_files_that_report_rebuilds(llpbench: LLPBench, plugin: Path, tmp_path: Path) -> None:
    result = llpbench.succeed(*arguments(plugin, tmp_path, "--plots"))
    assert "quick-a" in result.out
    assert "started quick-a on tiny ordered 8 (2 seeds)" in result.err
    assert "8/8 runs" in result.err
    plots = {path.name: path.read_bytes() for path in (tmp_path / "plots").glob("*.svg")}
    ranking = f"robustness ranking: {tmp_path / 'README.md'}#robustness\n"
    places = f"page: {tmp_path / 'index.html'}\n{ranking}plots: {tmp_path / 'plots'} ({len(plots)} figures)\n"
    assert result.err.endswith(places)
    assert {name.partition("-fine")[0] for name in plots} >= {"time", "bag-size", "robustness"}
    page = (tmp_path / "README.md").read_text()
    assert "\n## Robustness\n" in page
    assert all(f"](plots/{name})" in page for name in plots)
    assert page.count(".svg)") == len(plots)
    (tmp_path / "README.md").unlink()
    (tmp_path / "plots" / "time-fine-ordered.svg").unlink()
    with (tmp_path / FILE).open("ab") as file:
        file.write(b'{"schema":1,"ru')
    again = llpbench("report", "--out", str(tmp_path))
    assert (again.code, again.out) == (0, result.out)
    assert again.err.endswith(places)
    assert {path.name: path.read_bytes() for path in (tmp_path / "plots").glob("*.svg")} == plots
    assert "the last line of" in again.err
    parts = (tmp_path / "README.md").read_text().split("\n\n")
    assert "\n\n".join(part for part in parts if not part.startswith("- **The last line of")) == page


def test_wrong_declaration_is_reported_before_run(llpbench: LLPBench, plugin: Path, tmp_path: Path) -> None:
    mine = tmp_path / "misspelt.py"
    mine.write_text("""
from llpbench import register_method
from llpbench.methods.bag_share import BagShare
@register_method("misspelt", reference="Doe 2026")
class Misspelt(BagShare):
    "Never fits by its own."
    def fitt(self): ...
""")
    words = arguments(plugin, tmp_path / "out", "--plugin", str(mine), "--methods", "misspelt,quick-a")
    told = "method 'misspelt': 'fitt' is not a hook and would never be called. Did you mean fit?"
    planned, ran = llpbench(*words, "--dry-run"), llpbench(*words)
    assert f"warning: {told}\n" in planned.out
    assert told in " ".join(ran.err.split())
    assert "quick-a': " not in planned.out


def test_failures_exit_1_with_reason(llpbench: LLPBench, plugin: Path, tmp_path: Path) -> None:
    result = llpbench(*arguments(plugin, tmp_path, "--methods", "quick-a,broken"))
    assert result.code == 1
    assert "failed broken on tiny ordered 8 (2 seeds)" in result.err
    assert "ValueError: no luck" in result.err
    assert "Traceback" in result.err, "of the debug executor"
    alone = llpbench(*arguments(plugin, tmp_path / "alone", "--methods", "broken"))
    assert (alone.code, "broken on tiny 8, seeds 0, 1: ValueError: no luck" in alone.out) == (1, True)


def test_dry_run_writes_nothing(llpbench: LLPBench, plugin: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = arguments(plugin, out, "--bag-sizes", "8,41")
    dry = llpbench.succeed(*words, "--dry-run")
    assert "quick-a on tiny ordered 8 " in dry.out
    assert "impossible: bag size 41 is larger than the 40 validation rows of 'tiny'." in dry.out
    assert dry.out.endswith("4 runs to do in 2 cells, 4 impossible; less than a second one after the other\n")
    assert llpbench("plan", *words[1:]).out == dry.out
    assert not out.exists()


def test_data_fetch_and_list_of_datasets(llpbench: LLPBench, plugin: Path) -> None:
    from_plugin = ("--plugin", str(plugin))
    listed = llpbench.succeed("list", "datasets", *from_plugin)
    missing = {line.split()[0] for line in listed.out.splitlines() if line.endswith("missing here")}
    assert missing & {"tiny", "absent"} == {"absent"}
    fetched = llpbench("data", "fetch", "absent,tiny", *from_plugin)
    assert fetched.code == 1
    assert re.search(r'tiny: .*sha256="\w{64}"$', fetched.out, re.MULTILINE)
    assert fetched.err.startswith("llpbench: dataset 'absent' has no file")


def test_internal_error_keeps_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("llpbench.cli.main.resolve", lambda *_, **__: 1 / 0)
    monkeypatch.setattr(sys, "argv", ["llpbench", "run"])
    with pytest.raises(ZeroDivisionError):
        main()


def test_interrupt_message_depends_on_command(llpbench: LLPBench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "main", Mock(side_effect=KeyboardInterrupt))
    for command in ("run", "run --dry-run", "fit", "choose", "effects"):
        result = llpbench(*command.split())
        assert result.code == 130
        assert ("saved" in result.err) == ("to continue" in result.err) == (command == "run")


def test_interrupted_command_exits_130(plugin: Path, tmp_path: Path) -> None:
    process = start(arguments(plugin, tmp_path, "--set", "quick-a.seconds=0.3", "--set", "quick-b.seconds=0.3"))
    while process.poll() is None and not Contents.read(tmp_path / FILE).records:
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
    assert 0 < len(Contents.read(tmp_path / FILE).records) < 8


@pytest.mark.parametrize(
    ("words", "incomplete", "expected"),
    [("", "rep", ["report"]), ("run", "--bag-s", ["--bag-sizes"]), ("list", "enc", ["encoders"])],
)
def test_shell_completion_offers_commands_and_options(words: str, incomplete: str, expected: list[str]) -> None:
    offered = ShellComplete(cli, {}, "llpbench", "_LLPBENCH_COMPLETE").get_completions(words.split(), incomplete)
    assert [item.value for item in offered] == expected


def test_plan_shows_ranges_of_seeds_and_check_joins_same_failures() -> None:
    assert [_seeds(seeds) for seeds in ((), (3,), (0, 1), (2, 3, 4), (0, 3, 7))] == ["", "3", "0,1", "2-4", "0,3,7"]
    results = {"one": ("failed", "no luck"), "two": ("ok", ""), "three": ("failed", "no luck"), "four": ("ok", "")}
    verdicts = [Verdict(Check(name, name.title(), str), *of) for name, of in results.items()]  # type: ignore[arg-type]
    first, *others = _verdict_rows(verdicts)
    assert first == ("One (the same result in: Three)", "failed", "no luck")
    assert [row[0] for row in others] == ["Two", "Four"]


def test_epochs_that_averages_do_not_train_are_named(llpbench: LLPBench) -> None:
    words = ("plan", "--methods", "dllp", "--datasets", "adult", "--bag-sizes", "64", "--epochs", "20", "--average")
    assert "half:20" in llpbench.succeed(*words, "half").err
    assert "--average" not in llpbench.succeed(*words, "half:20").err


METHOD = "from llpbench.core.registry import register_method\n@register_method('odd', reference='')\n"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["plan", "--datasets", "adlut"], "unknown dataset 'adlut'. Did you mean adult"),
        (["run", "--config", "/none.toml"], "--config '/none.toml' cannot be read: No such file or directory"),
        (["check", "dllp", "--dataset", "adult"], "--dataset needs a bagging to check, but 'dllp' has none"),
        (["check", "ordered", "--dataset", "nosuch"], "'nosuch'"),
        (["run", "--out", "/dev/null/x"], "journal '/dev/null/x/journal.jsonl' cannot be read: Not a directory"),
        (["run", "--out", "~nobody-of-that-name/x"], "'~nobody-of-that-name/x'"),
        (["run", "--plugin", "/none.py"], "plugin '/none.py' cannot be read"),
        (["rnu"], "Did you mean run?"),
        (["data", "fech"], "Did you mean fetch?"),
        (["list", "studies", "dllp"], "only list params takes the name"),
        (["estimate-table", "--seed", "-1"], "--seed must be in the range x>=0, got -1"),
        (["fit", "rows.csv", "--noise", "abc"], "--noise must be a number, got 'abc'"),
        (["fit", "rows.csv", "--bag-column", "d", "--out", "m"], "--bags is missing. Add --bags FILE."),
        (["run", "--nonsense"], "--nonsense"),
        (["compare", "--against", "moon"], "--against must be one of 'published', "),
        (["report", "--out", "/none"], "there is no journal '/none'"),
        (["report", "--study", "tables"], "unknown study 'tables'"),
        (["data", "fetch", "--data-dir", "/none"], "data directory '/none'"),
        (["merge"], "JOURNAL... is missing."),
        (["plan", "--study", "encoder", "--encoders", "mlp"], "--encoders saint-row,saint"),
        (["report", "--journal="], "must be a path, got ''"),
        (["fit", "", "--bags", "bags.csv", "--bag-column", "d", "--counts", "a", "--out", "m"], "be a path, got ''"),
    ],
)
def test_invalid_arguments_are_refused(words: list[str], told: str, llpbench: LLPBench) -> None:
    assert told in refused(llpbench(*words))


@pytest.mark.parametrize("content", ["a = " + "[" * 50_000 + "]" * 50_000, "# " + "x" * 1_000_001])
def test_endless_configuration_is_refused(content: str, tmp_path: Path, llpbench: LLPBench) -> None:
    file = tmp_path / "run.toml"
    file.write_text(content)
    assert f"--config {str(file)!r}" in refused(llpbench("plan", "--config", str(file)))


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (f"{METHOD}class Odd:\n    'No method.'\n", "must be a class that extends Method"),
        (f"{METHOD}def odd():\n    'No class.'\n", "must be a class that extends Method"),
        ("class Own(BaseException): pass\nraise Own('odd')\n", "failed on import: Own: odd"),
        ("def (\n", "failed on import: SyntaxError"),
        ("from llpbench import register_bagging\n@register_bagging('random')\ndef odd(): ...", "called 'random'"),
    ],
)
def test_faulty_plugin_is_refused(code: str, told: str, tmp_path: Path, llpbench: LLPBench) -> None:
    file = tmp_path / "odd_plugin.py"
    file.write_text(code)
    for words in (["list", "methods"], ["run"], ["plan"], ["list", "datasets"])[: 4 if "odd" in told else 1]:
        assert told in refused(llpbench(*words, "--plugin", str(file)))


def test_foreign_or_locked_journal_is_refused(llpbench: LLPBench, plugin: Path, tmp_path: Path) -> None:
    run = arguments(plugin, tmp_path)
    (tmp_path / FILE).write_text("name,age\n")
    for words in (run, ["plan", *run[1:]], ["report", "--out", str(tmp_path)]):
        assert "is not a journal of llpbench" in refused(llpbench(*words))
    (tmp_path / FILE).unlink()
    with Journal(tmp_path):
        assert "another llpbench is writing to" in refused(llpbench(*run))
    llpbench.succeed(*run)


def shell(words: str, *given: object) -> subprocess.CompletedProcess[str]:
    """`llpbench` with redirections of a shell; `given` are its arguments from $1 on."""
    command = ["sh", "-c", words.replace("llpbench", f"{sys.executable} -P -m llpbench"), "sh", *map(str, given)]
    return subprocess.run(command, capture_output=True, text=True, timeout=250)


@pytest.mark.parametrize("closed", ["2>/dev/full", "2>&- >&- <&-"])
def test_run_continues_with_closed_stderr(plugin: Path, tmp_path: Path, closed: str) -> None:
    some = ("--methods", "quick-a", "--bag-sizes", "8")
    done = shell(f'llpbench "$@" {closed}', *arguments(plugin, tmp_path / "out", *some))
    assert done.returncode == 0, done.stdout + done.stderr
    journal = (tmp_path / "out" / FILE).read_bytes()
    assert journal.count(b"\n") == 2
    assert journal.count(b'{"') >= 2


@pytest.mark.parametrize("command", ["list methods", "--help"])
def test_full_stdout_is_failure(command: str) -> None:
    done = shell(f"llpbench {command} >/dev/full")
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("llpbench: ")
    assert "No space left on device" in line


def test_closed_pipe_ends_silently() -> None:
    process = start(["list", "methods"])
    assert process.stdout is not None
    process.stdout.close()
    assert process.wait(60) == 1
    assert process.stderr is not None
    assert process.stderr.read() == ""


def test_terminal_escapes_are_neutralised(tmp_path: Path, llpbench: LLPBench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    frame, bags, votes = people(300, 12)
    evil = "\x1b]0;owned\x07\x9b2J"
    frame.assign(**{"district": bags, f"id{evil}": [f"{evil}{n}" for n in range(300)]}).to_csv("rows.csv", index=False)
    table = counted(bags, votes).rename_axis("district").reset_index()
    table.columns = pd.Index(["district", f"no{evil}", f"yes{evil}"])
    table.to_csv("bags.csv", index=False)
    common = ["fit", "rows.csv", "--bags", "bags.csv", "--bag-column", "district", "--method", "count-gbdt"]
    for more in (["--counts", f"no{evil},yes{evil}", "--out", "model"], ["--counts", "nothing", "--out", "other"]):
        result = llpbench(*common, *more)
        assert not {"\x1b", "\x07", "\x9b"} & {*result.out, *result.err}
        assert "\\x1b]0;owned\\x07\\x9b2J" in result.out + result.err
