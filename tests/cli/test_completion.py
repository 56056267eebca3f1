"""Shells complete commands, options and registered names."""

from __future__ import annotations

import pytest
from bench import LLPBench
from click.shell_completion import ShellComplete

from llpbench.cli.main import cli


def offered(words: str, incomplete: str) -> list[str]:
    shell = ShellComplete(cli, {}, "llpbench", "_LLPBENCH_COMPLETE")
    return [item.value for item in shell.get_completions(words.split(), incomplete)]


@pytest.mark.parametrize(
    ("words", "incomplete", "expected"),
    [
        ("", "rep", ["report"]),
        ("run", "--bag-s", ["--bag-sizes"]),
        ("run --methods", "dl", ["dllp"]),
        ("run --methods", "dllp,bag-gp-", ["dllp,bag-gp-gbdt"]),
        ("run --datasets", "adu", ["adult"]),
        ("run --datasets", "adult,suite:ra", ["adult,suite:rare"]),
        ("check", "ml", ["mlp"]),
        ("list", "enc", ["encoders"]),
    ],
)
def test_words_are_completed(words: str, incomplete: str, expected: list[str]) -> None:
    assert offered(words, incomplete) == expected


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_a_script(llpbench: LLPBench, shell: str) -> None:
    result = llpbench("completion", shell)
    assert result.code == 0
    assert f"_LLPBENCH_COMPLETE={shell}_complete" in result.out
