"""What a run leaves may be published where its data may not: figures and hashes, and not one value of a row."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from bench import LLPBench

from llpbench.results.journal import Contents

DATASET = '''
from llpbench.core.registry import register_dataset
from llpbench.data.sources import Parquet


@register_dataset("private", source=Parquet("private.parquet"), target="answer", positive="secretly")
def private(frame):
    """What must not be passed on."""
    return frame
'''


def test_run_leaves_no_value_of_any_row(tmp_path: Path, llpbench: LLPBench) -> None:
    rng = np.random.default_rng(0)
    answers = rng.random(400) < 0.4
    frame = pd.DataFrame(
        {
            "amount": 7_654_321.25 + np.arange(400) + 100 * answers,
            "person": [f"person-{number % 40}" for number in range(400)],
            "answer": np.where(answers, "secretly", "openly"),
        }
    )
    frame.to_parquet(tmp_path / "private.parquet")
    plugin, out = tmp_path / "private_data.py", tmp_path / "out"
    plugin.write_text(DATASET)
    flags = ["--methods", "dllp,bag-mean-linear,supervised-gbdt", "--pretraining", "none,self", "--epochs", "1"]
    flags += ["--set", "pretraining.epochs=1"]
    where = ["--plugin", str(plugin), "--datasets", "private", "--executor", "debug", "--out", str(out)]
    result = llpbench("run", *where, *flags, "--bag-sizes", "16", "--seeds", "1")
    assert result.code == 0, result.err
    assert {record["status"] for record in Contents.read(out / "journal.jsonl").records.values()} == {"ok"}

    left = [file for file in out.rglob("*") if file.is_file()]
    assert {file.suffix for file in left} >= {".jsonl", ".md", ".html"}
    assert any("pretrained" in file.parts for file in left)
    for file in left:
        content = file.read_bytes()
        for value in (b"person-", b"76543", b"76544", b"secretly", b"openly"):
            assert value not in content, f"{file} holds {value!r}"
