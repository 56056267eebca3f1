"""Texts and errors of other packages and plugins on one line."""

from __future__ import annotations

from llpbench.core.text import fault, one_line


class SpeechlessError(ValueError):
    def __str__(self) -> str:
        raise TypeError  # as errors of liac-arff do


def test_error_without_text_is_named_by_its_type() -> None:
    assert one_line(SpeechlessError("x")) == fault(SpeechlessError("x")) == "SpeechlessError"


def test_foreign_text_cannot_command_a_terminal_or_turn_the_line_round() -> None:
    assert one_line("a\n\x1b[31m\u202eb\x00") == "a [31m b"
    assert len(one_line("x" * 10_000)) == 300
