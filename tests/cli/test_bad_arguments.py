"""Arguments, files and plugins that no command can use: one clear line each.

The readers' own cases stand in test_settings.py, names in test_planning.py, journals in test_journal.py.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from bench import LLPBench, arguments, refused

from llpbench.results.journal import FILE, Journal

METHOD = "from llpbench.core.registry import register_method\n@register_method('odd', reference='')\n"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["run", "--methods", "dlp"], "unknown method 'dlp'. Did you mean dllp"),
        (["plan", "--datasets", "adlut"], "unknown dataset 'adlut'. Did you mean adult"),
        (["run", "--bag-sizes", "-64"], "--bag-sizes must be whole numbers"),
        (["plan", "--bag-sizes", "4885", "--methods", "dllp"], "bag size 4885 is larger"),
        (["run", "--config", "/none.toml"], "--config '/none.toml' cannot be read: No such file or directory"),
        (["run", "--preset", "slow"], "unknown preset 'slow'"),
        (["check", "dllp", "--dataset", "adult"], "--dataset needs a bagging to check, but 'dllp' has none"),
        (["check", "ordered", "--dataset", "nosuch"], "'nosuch'"),
        (["run", "--out", "/dev/null/x"], "journal '/dev/null/x/journal.jsonl' cannot be read: Not a directory"),
        (["run", "--out", "~nobody-of-that-name/x"], "'~nobody-of-that-name/x'"),
        (["run", "--plugin", "/none.py"], "plugin '/none.py' is not a file"),
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
        (["data", "list", "--data-dir", "/none"], "data directory '/none'"),
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
        (
            "from llpbench.core.registry import register_bagging\n@register_bagging('random')\ndef odd(): ...",
            "two baggings are called 'random'",
        ),
    ],
)
def test_faulty_plugin_is_refused(code: str, told: str, tmp_path: Path, llpbench: LLPBench) -> None:
    file = tmp_path / "odd_plugin.py"
    file.write_text(code)
    for words in (["list", "methods"], ["run"], ["plan"], ["data", "list"])[: 4 if "odd" in told else 1]:
        assert told in refused(llpbench(*words, "--plugin", str(file)))


def test_foreign_or_locked_journal_is_refused(llpbench: LLPBench, plugin: Path, tmp_path: Path) -> None:
    run = arguments(plugin, tmp_path)
    (tmp_path / FILE).write_text("name,age\n")
    for words in (run, ["plan", *run[1:]], ["report", "--out", str(tmp_path)]):
        assert "is not a journal of llpbench" in refused(llpbench(*words))
    (tmp_path / FILE).unlink()
    with Journal(tmp_path):
        assert "another llpbench is writing to" in refused(llpbench(*run))
    assert llpbench(*run).code == 0
