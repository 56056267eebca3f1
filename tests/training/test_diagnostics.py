"""Class awareness and pair accuracy: known answers, and what the journal holds of them."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from llpbench.core.cell import Environment, Protocol
from llpbench.training.cell_runs import run_cell
from llpbench.training.judging import class_awareness, pair_accuracy
from llpbench.training.specification import make_cell

LABELS = np.array([0, 0, 0, 1, 1])


@pytest.mark.parametrize(
    ("vectors", "expected"),
    [([[1.0, 0.0], [-1.0, 0.0]], 1.0), ([[1.0, 0.0], [0.0, 1.0]], 2 / 3), ([[1.0, 2.0], [1.0, 2.0]], 0.5)],
)
def test_class_awareness_of_known_geometries(vectors: list[list[float]], expected: float) -> None:
    z = np.array(vectors)[LABELS] * np.array([[1.0], [2.0], [0.1], [5.0], [3.0]])  # lengths do not matter
    assert class_awareness(z, LABELS)["cas"] == pytest.approx(expected)


@pytest.mark.parametrize("classes", [2, 3])
def test_class_awareness_matches_all_pairs(classes: int) -> None:
    rng = np.random.default_rng(0)
    z, labels = rng.normal(size=(40, 5)), np.arange(40) % classes
    unit = z / np.linalg.norm(z, axis=1, keepdims=True)
    cosine = unit @ unit.T
    rows = [np.flatnonzero(labels == c) for c in range(classes)]
    within = np.mean([np.mean([cosine[pair] for pair in itertools.permutations(own, 2)]) for own in rows])
    between = np.mean([cosine[np.ix_(a, b)].mean() for a, b in itertools.combinations(rows, 2)])
    found = class_awareness(z, labels)
    assert found["cosine-intra"] == pytest.approx(within)
    assert found["cosine-inter"] == pytest.approx(between)
    assert found["cas"] == pytest.approx((1 + within) / (2 + within + between))


def test_centring_removes_common_direction() -> None:
    z = np.eye(2)[LABELS] + 100.0
    found = class_awareness(z, LABELS)
    assert found["cas"] == pytest.approx(0.5, abs=1e-3)
    assert found["cas-centred"] == pytest.approx(1.0, abs=1e-6)


def test_single_class_and_zero_rows_are_handled() -> None:
    assert math.isnan(class_awareness(np.ones((4, 2)), np.zeros(4, int))["cas"])
    assert math.isfinite(class_awareness(np.zeros((4, 2)), np.array([0, 0, 1, 1]))["cas"])


def test_pair_accuracy_matches_hand_computation() -> None:
    equal = np.array([[True, True, False, True]])
    positive = np.array([[True, True, True, False]])
    found = pair_accuracy(equal, positive, np.array([0.5]))
    assert found == pytest.approx({"pair-accuracy": 2 / 3, "pair-chance": 0.5, "pair-kappa": 1 / 3})
    assert math.isnan(pair_accuracy(equal, np.zeros_like(positive), np.array([0.5]))["pair-accuracy"])


@pytest.mark.usefixtures("tiny_bench")
@pytest.mark.parametrize(
    ("method", "names"),
    [
        ("dllp", set()),
        ("llp-vat", {"w", "w-share"}),
        ("tabllp-bdc", {"pair-accuracy", "pair-chance", "pair-kappa", "lambda", "gamma", "lambda-share"}),
    ],
)
def test_journal_has_diagnostics_at_best_epochs(method: str, names: set[str]) -> None:
    cell = make_cell(method, "tiny", bag_size=16, encoder="mlp", protocol=Protocol(epochs=3))
    (record,) = run_cell(cell, [0], Environment(device="cpu"))
    assert record["status"] == "ok", record["reason"]
    for chosen in record["results"].values():
        found = chosen["diagnostics"]
        assert set(found) == {"cas", "cas-centred", "cosine-intra", "cosine-inter"} | names
        assert all(value is not None and math.isfinite(value) for value in found.values())
        if "lambda" in names:
            assert chosen["epoch"] is not None
            assert found["lambda"] == pytest.approx(math.exp(-5 * (1 - chosen["epoch"] / 3) ** 2), rel=1e-5)
            assert found["pair-chance"] == pytest.approx(0.52, abs=0.1)  # of 40 % in random pairs
    spent = sum(record["times"][what] for what in ("warm-up", "train", "evaluate"))
    assert spent <= record["times"]["stage train"] < 1.5 * spent
