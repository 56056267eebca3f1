"""Seconds on a GPU and on a CPU are not comparable: boards with both mark the rows on a GPU."""

from typing import Any

import pytest
from factory import record, runs

from llpbench.report.leaderboard import COLUMNS
from llpbench.report.tabulate import tabulate


def machine(device: str) -> dict[str, Any]:
    return {"hardware": {**record()["hardware"], "device": device}}


@pytest.mark.parametrize(
    ("devices", "marked"),
    [(("cpu", "cuda"), [False, True]), (("cpu", "cpu"), [False, False]), (("cuda", "cuda"), [False, False])],
)
def test_rows_on_a_gpu_are_marked_beside_rows_on_a_cpu(devices: tuple[str, str], marked: list[bool]) -> None:
    made = [runs("dllp", 0.9, 0.9, **machine(devices[0])), runs("llp-vat", 0.8, 0.8, **machine(devices[1]))]
    board = tabulate([run for group in made for run in group]).of("fine")[0]

    assert ["*" in field.lines[0] for field in COLUMNS["seconds"].fields(board)] == marked
    assert board.uses_both == any(marked)
