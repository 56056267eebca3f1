"""Texts and errors of other packages and plugins on one line."""

from __future__ import annotations

import csv
import io

import numpy as np
import pandas as pd
import pytest

from llpbench.core.text import fault, frame_as_csv, one_line


class SpeechlessError(ValueError):
    def __str__(self) -> str:
        raise TypeError  # as errors of liac-arff do


def test_error_without_text_is_named_by_its_type() -> None:
    assert one_line(SpeechlessError("x")) == fault(SpeechlessError("x")) == "SpeechlessError"


def test_foreign_text_cannot_command_a_terminal_or_turn_the_line_round() -> None:
    assert one_line("a\n\x1b[31m\u202eb\x00") == "a [31m b"
    assert len(one_line("x" * 10_000)) == 300


FORMULAS = ["=1+1", "+cmd", "-x", "@sum", "\t=1", "\r=1", "\n=1", "＝1"]
HARMLESS = ["-5", "+3e-2", "-", "a=b", "", "plain"]


@pytest.mark.parametrize("text", FORMULAS)
def test_csv_fields_and_headings_are_no_formulas(text: str) -> None:
    frame = pd.DataFrame({text: [text, None], "kind": pd.Categorical([text, "b"]), "n": [-1.5, np.nan]})
    heading, row = list(csv.reader(io.StringIO(frame_as_csv(frame), newline="")))[:2]
    assert heading == [f"'{text}", "kind", "n"]
    assert row == [f"'{text}", f"'{text}", "-1.5"]


def test_harmless_csv_text_is_unchanged() -> None:
    frame = pd.DataFrame({"text": HARMLESS, "number": range(len(HARMLESS))})
    assert frame_as_csv(frame) == frame.to_csv(index=False)


def test_carriage_return_in_text_starts_no_row() -> None:
    frame = pd.DataFrame({"text": ["a\r=1", "b"]})
    assert list(csv.reader(io.StringIO(frame_as_csv(frame), newline=""))) == [["text"], ["a\r=1"], ["b"]]
