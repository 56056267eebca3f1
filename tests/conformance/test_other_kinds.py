"""Encoders, baggings and datasets keep to their contracts too, and every way to break one is caught."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.random import Generator
from torch import Tensor

from llpbench.conformance import CHECKS_OF, Verdict, run_checks
from llpbench.core.bags import IntArray, Rows, Schema
from llpbench.core.model import Encoder, Encoding, Random
from llpbench.core.registry import BAGGINGS, DATASETS, ENCODERS, Entry, Registry
from llpbench.core.tables import Table
from llpbench.data.baggings import column_keys, grouped
from llpbench.data.sources import Parquet
from llpbench.encoders.mlp import MLPEncoder, MLPParams

BUILT_IN = [(ENCODERS, "mlp"), (DATASETS, "adult"), *((BAGGINGS, n) for n in BAGGINGS.select("all") if n != "kmeans")]


@pytest.mark.parametrize(("registry", "name"), BUILT_IN, ids=lambda value: value if isinstance(value, str) else "")
def test_built_in_encoders_and_baggings_pass_conformance(registry: Registry, name: str) -> None:
    verdicts = list(run_checks(registry.entry(name)))
    assert any(verdict.result == "ok" for verdict in verdicts)
    for verdict in verdicts:
        assert verdict.detail
        assert verdict.result != "failed", f"{verdict.check.name}: {verdict.detail}"


OF_EVERY_ENCODER = ("declaration", "encodes", "padding", "row_interaction", "contextual", "awkward")
"""checks that train nothing; all checks are tried with the MLP"""


@pytest.mark.parametrize("name", ENCODERS.names())
def test_every_encoder_matches_its_declaration(name: str) -> None:
    subject_of, checks = CHECKS_OF[ENCODERS.kind]
    subject = subject_of(ENCODERS.entry(name))
    verdicts = [check(subject) for check in checks if check.name in OF_EVERY_ENCODER]
    assert [verdict.check.name for verdict in verdicts if verdict.result == "ok"] == [*OF_EVERY_ENCODER]


Catch = Callable[..., str]


@pytest.fixture
def caught(monkeypatch: pytest.MonkeyPatch) -> Catch:
    """What a check says of something bad: one line."""

    def fault(registry: Registry, check: str, declared: Any, /, summary: str = "Bad.", **facts: Any) -> str:
        entry = Entry(registry.kind, "bad", summary, {**registry.defaults, **facts}, "bad.py:1", __name__, declared)
        monkeypatch.setattr(registry, "_entries", {**registry._index(), "bad": entry})
        subject_of, checks = CHECKS_OF[registry.kind]
        found: Verdict = {each.name: each for each in checks}[check](subject_of(entry))
        assert found.result == "failed", found.detail
        assert "\n" not in found.detail
        return found.detail

    return fault


def cut(rows: IntArray, size: int) -> IntArray:
    return rows[: len(rows) // size * size].reshape(-1, size)


def sorting_the_table(table: Table, rows: IntArray, size: int, rng: Generator) -> IntArray:
    del rng
    table.numeric.sort(axis=0)
    return cut(rows, size)


def overlapping(_table: Table, rows: IntArray, size: int, _rng: Generator) -> IntArray:
    return np.tile(rows[:size], (len(rows) // size, 1))


def shuffled(_table: Table, rows: IntArray, size: int, _rng: Generator) -> IntArray:
    return cut(np.random.permutation(rows), size)  # noqa: NPY002


def by_first_number(table: Table, rows: IntArray, size: int, _rng: Generator) -> IntArray:
    return cut(rows[np.argsort(table.numeric[rows, 0])], size)


@pytest.mark.parametrize(
    ("check", "bagging", "message"),
    [
        ("declaration", lambda _table, rows, size: cut(rows, size), "must take (table, rows, size, rng)"),
        ("bags_rows", overlapping, "rows into more than one bag"),
        ("seeded", shuffled, "draw random numbers only from the given generator"),
        ("harmless", sorting_the_table, "it modifies the table"),
        ("awkward", by_first_number, "categories alone: IndexError"),
        ("keyed", lambda _table, rows, _rng: grouped(rows, np.arange(len(rows)) // 50), "are in several bags"),
    ],
)
def test_faulty_bagging_is_caught(caught: Catch, check: str, bagging: Any, message: str) -> None:
    assert message in caught(BAGGINGS, check, bagging, keyed=check == "keyed")


class Small(MLPEncoder):
    """The MLP."""

    Params = MLPParams

    def __init__(self, schema: Schema, params: MLPParams, dropout: float) -> None:
        super().__init__(schema, replace(params, token_dim=4, numeric_hidden=4, hidden=16, dim=8), dropout)


def bad(**own: Any) -> Any:
    return type("Bad", (Small,), own)


def encoding_of(change: Callable[[Encoding, Tensor], Any], **own: Any) -> Any:
    """The small MLP, which returns something else."""

    def encode(encoder: Small, embeddings: Tensor, mask: Tensor, random: Random | None) -> Any:
        return change(MLPEncoder.encode(encoder, embeddings, mask, random), mask)

    return bad(encode=encode, **own)


def minus_the_mean(found: Encoding, mask: Tensor) -> Encoding:
    """Row vectors that depend on the other rows of the bag."""
    inside = mask.unsqueeze(-1)
    return found._replace(z=found.z - (found.z * inside).sum(dim=1, keepdim=True) / inside.sum(dim=1, keepdim=True))


def hiding_what_is_missing(encoder: Small, rows: Rows) -> Tensor:
    return MLPEncoder.embed(encoder, rows._replace(missing=torch.zeros_like(rows.missing)))


class Silent(Encoder):
    """Embeds, and that is all."""

    Params = MLPParams

    def embed(self, rows: Rows) -> Tensor:
        numbers: Tensor = rows.numeric
        return numbers[..., None]


class Unsized(Silent):
    """Does not say how wide its vectors are."""

    def __init__(self, schema: Schema, params: MLPParams, dropout: float) -> None:
        super().__init__()


@dataclass
class Thawed:
    """Sizes that can be changed."""


def moved(by: Callable[[Tensor], Tensor], **own: Any) -> Any:
    """The small MLP, whose row vectors are others."""
    return encoding_of(lambda found, _: found._replace(z=by(found.z)), **own)


CENTRED = moved(lambda z: z - z.mean(dim=1, keepdim=True), row_interaction=True)
SHORT = bad(embed=lambda encoder, rows: MLPEncoder.embed(encoder, rows)[..., 1:, :])
WRONG_TOKENS = encoding_of(lambda found, _: found._replace(tokens=found.z))


@pytest.mark.parametrize(
    ("check", "encoder", "message"),
    [
        ("declaration", bad(Params=Thawed), "it needs `Params`, a @dataclass(frozen=True)"),
        ("declaration", Small, "methods use its hidden"),
        ("declaration", Silent, "Silent needs encode(embeddings, mask, random)"),
        ("encodes", WRONG_TOKENS, "tokens of encode must be of shape (2, 6, 5, 4), got (2, 6, 8)"),
        ("encodes", Unsized, "set self.dim and self.token_dim"),
        ("encodes", SHORT, "embed must be of shape (2, 6, 5, 4), got (2, 6, 4, 4)"),
        ("encodes", encoding_of(lambda found, _: found.z), "encode must give an Encoding(z, tokens), got Tensor"),
        ("seeded", moved(lambda z: z + torch.randn_like(z)), "two predictions differ"),
        ("padding", CENTRED, "z of rows depends on padding"),
        ("row_interaction", encoding_of(minus_the_mean), "declare row_interaction = True"),
        ("contextual", bad(contextual=True), "declare contextual = False"),
        ("awkward", bad(embed=hiding_what_is_missing), "it treats a missing number as 0"),
        ("learns", moved(lambda z: z * 1e-12), "on well-separated classes in pure bags, below 0.95"),
    ],
)
def test_faulty_encoder_is_caught(caught: Catch, check: str, encoder: Any, message: str) -> None:
    facts = {"learning_rate": 1e-3} if encoder is Small else {"learning_rate": 1e-3, "hidden": 64}
    assert message in caught(ENCODERS, check, encoder, **facts)
    assert "got 16" in caught(ENCODERS, "declaration", Small, learning_rate=1e-3, hidden=16)


@pytest.mark.parametrize("check", [each.name for each in CHECKS_OF[ENCODERS.kind][1]])
def test_every_check_tells_that_an_encoder_has_no_sizes(caught: Catch, check: str) -> None:
    assert "Params`" in caught(ENCODERS, check, bad(Params=None), learning_rate=1e-3, hidden=64)


def a_rare_class(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(label=["w"] * 3 + [*frame["label"][3:]])


@pytest.mark.parametrize(
    ("check", "change", "facts", "told"),
    [
        ("features", lambda frame: frame, {}, "feature 'b' reveals the label"),
        ("features", lambda frame: frame.assign(b=(frame["label"] == "u") + frame["a"] / 99), {}, "'b' reveals the"),
        ("features", lambda frame: frame.assign(b="x"), {}, "feature 'b' is constant"),
        ("unchanged", lambda frame: frame.assign(a=frame["a"] + 1), {}, "changes its own output"),
        ("classes", a_rare_class, {}, "class 'w' has 3 rows: a split needs at least 10"),
        ("loads", lambda frame: frame, {"sha256": "0" * 64}, "is another table: sha256"),
    ],
)
def test_bad_dataset_is_caught(caught: Catch, tmp_path: Path, check: str, change: Any, facts: Any, told: str) -> None:
    label = np.arange(200) % 2 == 0
    frame = pd.DataFrame({"a": np.sin(range(200)), "b": np.where(label, "x", "y"), "label": np.where(label, "u", "v")})
    frame.to_parquet(tmp_path / "bad.parquet")
    source = Parquet(str(tmp_path / "bad.parquet"))
    assert told in caught(DATASETS, check, change, source=source, target="label", **facts)


def test_column_bagging_is_checked_on_dataset_with_column(monkeypatch: pytest.MonkeyPatch) -> None:
    def by_education(table: Table, rows: IntArray, rng: Generator) -> IntArray:
        del rng
        return grouped(rows, column_keys(table, rows, "education"))

    entry = Entry("bagging", "bad", "By education.", {"keyed": True}, "bad.py:1", __name__, by_education)
    monkeypatch.setattr(BAGGINGS, "_entries", {**BAGGINGS._index(), "bad": entry})
    toys = {each.check.name: each for each in run_checks(entry)}
    assert [name for name, each in toys.items() if each.result == "ok"] == ["declaration"]
    assert toys["bags_rows"].result == "does not apply"
    assert toys["keyed"].detail.endswith("Name a dataset that has it: --dataset NAME.")
    adult = {each.check.name: each for each in run_checks(entry, "adult")}
    assert [name for name, each in adult.items() if each.result != "ok"] == ["awkward"]
