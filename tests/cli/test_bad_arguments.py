"""Arguments and plugins that no command can use: one clear line each."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench import LLPBench

METHOD = "from llpbench.core.registry import register_method\n@register_method('odd', reference='')\n"


def refused(result: object) -> str:
    """The one line of what was refused."""
    assert isinstance(result, tuple)
    code, _, err = result
    assert code == 2, err
    (line,) = err.strip().splitlines()
    return str(line)


@pytest.mark.parametrize(
    "words",
    [
        ["report", "--journal="],
        ["report", "--out", ""],
        ["compare", "--out="],
        ["merge", "", "--out", "merged"],
        ["merge", ".", "--out="],
        ["fit", "", "--bags", "bags.csv", "--bag-column", "d", "--counts", "a", "--out", "m"],
        ["effects", "--out="],
    ],
)
def test_an_empty_path_is_no_folder(words: list[str], llpbench: LLPBench) -> None:
    assert "must be a path, got ''" in refused(llpbench(*words))


def test_a_missing_dataset_is_reported_once(llpbench: LLPBench) -> None:
    assert "'nosuch'" in refused(llpbench("check", "ordered", "--dataset", "nosuch"))


@pytest.mark.parametrize("content", ["a = " + "[" * 50_000 + "]" * 50_000, None, "# " + "x" * 1_000_001])
def test_a_configuration_without_end_or_bottom(content: str | None, tmp_path: Path, llpbench: LLPBench) -> None:
    file = Path("/dev/zero")
    if content is not None:
        file = tmp_path / "run.toml"
        file.write_text(content)
    assert f"--config {str(file)!r}" in refused(llpbench("plan", "--config", str(file)))


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (f"{METHOD}class Odd:\n    'No method.'\n", "must extend Method or DirectMethod"),
        (f"{METHOD}def odd():\n    'No class.'\n", "must extend Method or DirectMethod"),
        ("class Own(BaseException): pass\nraise Own('odd')\n", "failed on import: Own: odd"),
        ("raise SystemExit(3)\n", "failed on import: SystemExit: 3"),
        ("import nothing_of_that_name\n", "failed on import: ModuleNotFoundError"),
        ("def (\n", "failed on import: SyntaxError"),
        (
            METHOD.replace("method", "bagging").replace("odd", "random").replace(", reference=''", "")
            + "def odd(): ...",
            "two baggings are called 'random'",
        ),
    ],
)
def test_a_plugin_that_registers_no_method_or_raises_anything(
    code: str, told: str, tmp_path: Path, llpbench: LLPBench
) -> None:
    file = tmp_path / "odd_plugin.py"
    file.write_text(code)
    assert told in refused(llpbench("list", "methods", "--plugin", str(file)))
