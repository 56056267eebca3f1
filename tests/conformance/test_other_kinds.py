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
from llpbench.conformance.of_baggings import BaggingSubject
from llpbench.core.bags import IntArray, Rows, Schema
from llpbench.core.entries import Entry
from llpbench.core.model import Encoder, Encoding, Random
from llpbench.core.registry import BAGGINGS, DATASETS, ENCODERS, Registry
from llpbench.core.tables import Table
from llpbench.data.baggings import column_keys, grouped
from llpbench.data.sources import Parquet
from llpbench.encoders.mlp import MLPEncoder, MLPParams

BUILT_IN = [
    (ENCODERS, "mlp"),
    *((BAGGINGS, name) for name in BAGGINGS.names() if name != "kmeans"),
    (DATASETS, "adult"),
]


@pytest.mark.parametrize(("registry", "name"), BUILT_IN, ids=lambda value: value if isinstance(value, str) else "")
def test_what_is_built_in_keeps_to_its_contract(registry: Registry, name: str) -> None:
    verdicts = list(run_checks(registry.entry(name)))
    assert any(verdict.result == "ok" for verdict in verdicts)
    for verdict in verdicts:
        assert verdict.detail
        assert verdict.result != "failed", f"{verdict.check.name}: {verdict.detail}"


OF_EVERY_ENCODER = ("declaration", "encodes", "padding", "row_interaction", "contextual", "awkward")
"""checks that train nothing; all checks are tried with the MLP"""


@pytest.mark.parametrize("name", ENCODERS.names())
def test_every_encoder_is_what_it_declares(name: str) -> None:
    subject_of, checks = CHECKS_OF[ENCODERS.kind]
    subject = subject_of(ENCODERS.entry(name))
    verdicts = [check(subject) for check in checks if check.name in OF_EVERY_ENCODER]
    assert [verdict.check.name for verdict in verdicts if verdict.result == "ok"] == [*OF_EVERY_ENCODER]


Catch = Callable[..., str]


@pytest.fixture
def caught(monkeypatch: pytest.MonkeyPatch) -> Catch:
    """What a check says of something bad: one line."""

    def fault(registry: Registry, check: str, declared: Any, /, **facts: Any) -> str:
        summary = (declared.__doc__ or "").split("\n")[0]
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


def without_a_word(table: Table, rows: IntArray, size: int, rng: Generator) -> IntArray:
    del table, rng
    return cut(rows, size)


def unseeded(table: Table, rows: IntArray, size: int, rng: Generator) -> IntArray:
    """Draws from numpy's global generator."""
    del table, rng
    return cut(np.random.permutation(rows), size)  # noqa: NPY002


def twice(table: Table, rows: IntArray, size: int, rng: Generator) -> IntArray:
    """The first bag again and again."""
    del table, rng
    return np.tile(rows[:size], (len(rows) // size, 1))


def writes(table: Table, rows: IntArray, size: int, rng: Generator) -> IntArray:
    """Sorts the table."""
    del rng
    table.numeric.sort(axis=0)
    return cut(rows, size)


def numbers_alone(table: Table, rows: IntArray, size: int, rng: Generator) -> IntArray:
    """Takes a number for granted."""
    del rng
    return cut(rows[np.argsort(table.numeric[rows, 0])], size)


def by_place(table: Table, rows: IntArray, rng: Generator) -> IntArray:
    """A row's bag depends on where it stands among others."""
    del table, rng
    return grouped(rows, np.arange(len(rows)) // 50)


def without_rng(table: Table, rows: IntArray, size: int) -> IntArray:
    """Takes too little."""
    del table
    return cut(rows, size)


@pytest.mark.parametrize(
    ("check", "bagging", "message"),
    [
        ("declaration", without_a_word, "bad needs a docstring"),
        ("declaration", without_rng, "must take (table, rows, size, rng)"),
        ("bags_rows", twice, "rows into more than one bag"),
        ("seeded", unseeded, "draw random numbers only from the given generator"),
        ("harmless", writes, "it modifies the table"),
        ("awkward", numbers_alone, "categories alone: IndexError"),
        ("keyed", by_place, "rows of one bag are in several bags"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_bad_bagging_is_caught(caught: Catch, check: str, bagging: Any, message: str) -> None:
    assert message in caught(BAGGINGS, check, bagging, keyed=bagging is by_place)


class Small(MLPEncoder):
    """The MLP."""

    Params = MLPParams

    def __init__(self, schema: Schema, params: MLPParams, dropout: float) -> None:
        super().__init__(schema, replace(params, token_dim=4, numeric_hidden=4, hidden=16, dim=8), dropout)


class Flat(Small):
    """Forgets the feature axis."""

    def encode(self, embeddings: Tensor, mask: Tensor, random: Random | None) -> Encoding:
        found = super().encode(embeddings, mask, random)
        return found._replace(tokens=found.z)


class Bare(Small):
    """Gives row vectors alone."""

    def encode(self, embeddings: Tensor, mask: Tensor, random: Random | None) -> Encoding:
        return super().encode(embeddings, mask, random).z  # type: ignore[return-value]


class Short(Small):
    """Leaves a feature out."""

    def embed(self, rows: Rows) -> Tensor:
        return super().embed(rows)[..., 1:, :]


class Silent(Encoder):
    """Embeds, and that is all."""

    Params = MLPParams

    def embed(self, rows: Rows) -> Tensor:
        numbers: Tensor = rows.numeric
        return numbers[..., None]


class Unsized(Silent):
    """Does not say how wide its vectors are."""

    def __init__(self, schema: Schema, params: MLPParams, dropout: float) -> None:
        del schema, params, dropout
        super().__init__()


class Careless(Small):
    """Takes the mean over padding, too."""

    row_interaction = True

    def encode(self, embeddings: Tensor, mask: Tensor, random: Random | None) -> Encoding:
        found = super().encode(embeddings, mask, random)
        return found._replace(z=found.z - found.z.mean(dim=1, keepdim=True))


class Gossip(Small):
    """Lets rows see one another without a word."""

    def encode(self, embeddings: Tensor, mask: Tensor, random: Random | None) -> Encoding:
        found = super().encode(embeddings, mask, random)
        inside = mask.unsqueeze(-1)
        return found._replace(z=found.z - (found.z * inside).sum(dim=1, keepdim=True) / inside.sum(dim=1, keepdim=True))


class Chatty(Small):
    """Says that its tokens know of one another."""

    contextual = True


class Noisy(Small):
    """Draws without its stream."""

    def encode(self, embeddings: Tensor, mask: Tensor, random: Random | None) -> Encoding:
        found = super().encode(embeddings, mask, random)
        return found._replace(z=found.z + torch.randn_like(found.z))


class Blind(Small):
    """Does not see what is missing."""

    def embed(self, rows: Rows) -> Tensor:
        return super().embed(rows._replace(missing=torch.zeros_like(rows.missing)))


class Idle(Small):
    """Says the same of every row but for a hair."""

    def encode(self, embeddings: Tensor, mask: Tensor, random: Random | None) -> Encoding:
        found = super().encode(embeddings, mask, random)
        return found._replace(z=found.z * 1e-12)


@dataclass
class Thawed:
    """Sizes that can be changed."""


class Changeable(Small):
    """Has sizes that can be changed."""

    Params = Thawed  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("check", "encoder", "message"),
    [
        ("declaration", Changeable, "it needs `Params`, a @dataclass(frozen=True)"),
        ("declaration", Small, "methods use its hidden"),
        ("declaration", Silent, "Silent needs encode(embeddings, mask, random)"),
        ("encodes", Flat, "tokens of encode must be of shape (2, 6, 5, 4), got (2, 6, 8)"),
        ("encodes", Unsized, "set self.dim and self.token_dim"),
        ("learns", Short, "embed must be of shape (2, 6, 5, 4), got (2, 6, 4, 4)"),
        ("together", Bare, "encode must give an Encoding(z, tokens), got Tensor"),
        ("seeded", Noisy, "two predictions differ"),
        ("padding", Careless, "z of rows depends on padding"),
        ("row_interaction", Gossip, "declare row_interaction = True"),
        ("contextual", Chatty, "declare contextual = False"),
        ("awkward", Blind, "it treats a missing number as 0"),
        ("learns", Idle, "on well-separated classes in pure bags, below 0.95"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_bad_encoder_is_caught(caught: Catch, check: str, encoder: Any, message: str) -> None:
    facts = {"learning_rate": 1e-3} if encoder is Small else {"learning_rate": 1e-3, "hidden": 16}
    assert message in caught(ENCODERS, check, encoder, **facts)


def a_rare_class(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(label=["w"] * 3 + [*frame["label"][3:]])


@pytest.mark.parametrize(
    ("check", "change", "facts", "told"),
    [
        ("features", lambda frame: frame, {}, "feature 'b' reveals the label"),
        (
            "features",
            lambda frame: frame.assign(b=(frame["label"] == "u") + frame["a"] / 99),
            {},
            "feature 'b' reveals",
        ),
        ("features", lambda frame: frame.assign(b="x"), {}, "feature 'b' is constant"),
        ("unchanged", lambda frame: frame.assign(a=frame["a"] + 1), {}, "changes its own output"),
        ("classes", a_rare_class, {}, "class 'w' has 3 rows: a split needs at least 10"),
        ("loads", lambda frame: frame, {"rows": 300}, "expected 300, found 200"),
    ],
)
def test_a_bad_dataset_is_caught(
    caught: Catch, tmp_path: Path, check: str, change: Any, facts: dict[str, Any], told: str
) -> None:
    rng = np.random.default_rng(0)
    label = rng.random(200) < 0.5
    frame = pd.DataFrame(
        {"a": rng.normal(size=200), "b": np.where(label, "x", "y"), "label": np.where(label, "u", "v")}
    )
    frame.to_parquet(tmp_path / "bad.parquet")
    change.__doc__ = "Bad."
    source = Parquet(str(tmp_path / "bad.parquet"))
    assert told in caught(DATASETS, check, change, source=source, target="label", **facts)


def by_education(table: Table, rows: IntArray, rng: Generator) -> IntArray:
    """Goes by a column that toys lack."""
    del rng
    return grouped(rows, column_keys(table, rows, "education"))


def test_a_bagging_by_a_column_is_tried_on_a_dataset_that_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = Entry("bagging", "bad", "By education.", {"keyed": True}, "bad.py:1", __name__, by_education)
    monkeypatch.setattr(BAGGINGS, "_entries", {**BAGGINGS._index(), "bad": entry})
    toys = {each.check.name: each for each in run_checks(entry)}
    assert [name for name, each in toys.items() if each.result == "ok"] == ["declaration"]
    assert toys["bags_rows"].result == toys["cost"].result == "does not apply"
    assert toys["keyed"].detail.endswith("Name a dataset that has it: --dataset NAME.")
    adult = {each.check.name: each for each in run_checks(entry, "adult")}
    assert [name for name, each in adult.items() if each.result != "ok"] == ["awkward"]
    assert adult["looks_at"].detail == "bags depend on categories"


def test_options_that_are_needed_name_a_key_of_the_dataset() -> None:
    assert BaggingSubject(BAGGINGS.entry("column"), "flights_2013").text == "column:by=date"
