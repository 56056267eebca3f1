"""Optional files with a run's predictions for single rows.

They are not part of a result: neither cell specifications nor the journal mention them, and llpbench never reads them.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from llpbench.core.bags import FloatArray, Task
from llpbench.core.criteria import CRITERIA
from llpbench.core.errors import LLPBenchError
from llpbench.core.files import replace_file
from llpbench.training.members import chosen_by_all
from llpbench.training.population import Population
from llpbench.training.stamp import Predicted


def predicted_by(population: Population, numbers: Sequence[int]) -> Predicted:
    """Return predictions at each criterion's selected epoch; for an ensemble, their mean, as in judging."""
    if population.average is not None:
        return _averaged(population, numbers)
    parts: dict[str, dict[str, list[FloatArray]]] = {}
    names = chosen_by_all([population.outcomes[number] for number in numbers])
    for number in numbers:
        outcome, task = population.outcomes[number], population.members[number].task
        chosen = {name: outcome.selected[name] for name in names}
        weights = {(choice.training, choice.epoch): choice.weights for choice in chosen.values()}
        stacked = torch.stack(list(weights.values()))
        for part, holdout in (("validation", task.validation), ("test", task.test)):
            proba = dict(zip(weights, population.predict(number, stacked, holdout.rows), strict=True))
            for name, choice in chosen.items():
                parts.setdefault(name, {}).setdefault(part, []).append(proba[choice.training, choice.epoch])
    return {
        name: {part: np.mean(proba_of_members, axis=0) for part, proba_of_members in of.items()}
        for name, of in parts.items()
    }


def _averaged(population: Population, numbers: Sequence[int]) -> Predicted:
    """Return the mean prediction over averaged weights and members, the same for every criterion."""
    task = population.members[numbers[0]].task
    parts = {"validation": task.validation.rows, "test": task.test.rows}
    weights = {number: population.outcomes[number].averaged for number in numbers}
    predicted = {
        part: np.mean([population.predict(n, w, rows) for n, w in weights.items() if w is not None], axis=(0, 1))
        for part, rows in parts.items()
    }
    return {name: predicted for name, each in CRITERIA.items() if each.regime in population.regimes}


def keep_predictions(file: Path, predicted: Predicted, task: Task, classes: Sequence[str]) -> None:
    """Write a parquet file with one row for each validation and test row of a task.

    Columns: `row` (index in the dataset, from 0), `split`, `label`, and `CRITERION/CLASS`, float32. Raises
    `LLPBenchError` if the file cannot be written.
    """
    from pandas import Categorical, DataFrame, concat

    parts = []
    for part, holdout in (("validation", task.validation), ("test", task.test)):
        number = len(holdout.rows.numeric)
        columns = {
            "row": np.arange(number) if holdout.numbers is None else holdout.numbers,
            "split": Categorical([part] * number, categories=["validation", "test"]),
        }
        if holdout.labels is not None:
            columns["label"] = Categorical.from_codes(holdout.labels, categories=list(classes))
        for criterion, of in predicted.items():
            of_class = zip(classes, of[part].T, strict=True)
            columns |= {f"{criterion}/{name}": proba.astype(np.float32) for name, proba in of_class}
        parts.append(DataFrame(columns))
    content = io.BytesIO()
    concat(parts, ignore_index=True).to_parquet(content, compression="zstd")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        replace_file(file, content.getvalue())
    except OSError as error:
        raise LLPBenchError(
            f"predictions cannot be written to {str(file)!r}: {error.strerror or error}. Make room, or leave "
            "out --save-predictions."
        ) from error
