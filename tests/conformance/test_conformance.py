"""Every method keeps to the contract, and every way to break it is caught by the check that is there for it."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any

import numpy as np
import pytest
import torch
from bench import LLPBench
from test_docs import BLOCKS
from torch import Tensor

import llpbench.conformance as conformance
from llpbench import DirectMethod, DirectParams, Member, Method, MethodParams, Now, Predictor, Reports, Stage
from llpbench.blocks.losses import bag_log_proba, proportion_loss
from llpbench.conformance import CHECKS, Check, Subject, Verdict, checks, find
from llpbench.conformance import subject as subjects
from llpbench.core.bags import BaggedRows, Bags, FloatArray, Rows, Schema, Task
from llpbench.core.errors import LLPBenchError
from llpbench.core.model import Encoder, Model, Network
from llpbench.core.ranges import Choice, Uniform, When, ranges
from llpbench.core.registry import METHODS, Entry
from llpbench.data.tasks import build_task as honest_build_task
from llpbench.methods.dllp import DLLP

ROWS, MORE_ROWS = 80, {"label_free": 160, "storable": 160}
"""rows of the toy table; checks that need two bags for validation or four for training have more"""
NOT_STORED = {"bag-soft-label-gbdt", "supervised", "supervised-gbdt", "validation-labels"}
"""methods without a model that can be saved, or that see labels"""


@cache
def subject(name: str, rows: int) -> Subject:
    """Kept for all checks of a method, which share a training; few trees and two rounds are as good as many."""
    declared: Any = METHODS.entry(name).load()
    choices: dict[str, Any] = dict(ranges(declared.Params))
    few = {each: [n for n in choices[each].values if n > 1] for each in ("trees", "rounds") if each in choices}
    return Subject(METHODS.entry(name), {each: min(values) for each, values in few.items()}, rows=rows)


def is_made_here(entry: Entry, check: str) -> bool:
    """Whether a check is part of these tests; `llpbench check` makes all.

    For extra methods, what could leak or disturb others is looked at.
    """
    if check == "learns":
        return not entry.facts["extra"]
    if entry.name == "bag-gp-gbdt":  # its members are tried alone; that it learns is in `test_direct_methods.py`
        return check in ("declaration", "trains", "label_free", "suppressed", "global_state", "saved", "storable")
    return True


CONTRACT = [(entry.name, check) for entry in METHODS.entries() for check in CHECKS if is_made_here(entry, check.name)]


@pytest.mark.parametrize(("name", "check"), CONTRACT, ids=[f"{name}-{check.name}" for name, check in CONTRACT])
def test_every_method_passes_conformance(name: str, check: Check) -> None:
    verdict = check(subject(name, MORE_ROWS.get(check.name, ROWS)))
    assert verdict.detail
    assert verdict.result != "failed", verdict.detail
    if check.name == "storable":
        assert (verdict.result == "ok") == (name not in NOT_STORED), verdict.detail


# -- faults are caught -------------------------------------------------------------------------------------------------


def verdict_of(check: str, declared: Any, **facts: Any) -> Verdict:
    kind = "direct" if isinstance(declared, type) and issubclass(declared, DirectMethod) else "neural"
    facts = {"kind": kind, "role": "", "classes": "multi", "reference": "Doe 2026"} | facts
    entry = Entry("method", "bad", (declared.__doc__ or "").split("\n")[0], facts, "", declared.__module__, declared)
    METHODS._entries = {**METHODS._entries, "bad": entry}
    return {one.name: one for one in CHECKS}[check](Subject(entry, rows=160))


def fault(check: str, declared: Any, **facts: Any) -> str:
    """What a check says of a bad method: one line."""
    verdict = verdict_of(check, declared, **facts)
    assert verdict.result == "failed"
    assert "\n" not in verdict.detail
    return verdict.detail


class Fine(DLLP):
    """Nothing is wrong with it."""


class Mean(DirectMethod):
    """Least squares on bag means."""

    def fit(self, train: BaggedRows, schema: Schema, rng: np.random.Generator) -> Predictor:
        inside = (train.index >= 0)[..., None]
        means = (train.rows.numeric[train.index] * inside).sum(axis=1) / inside.sum(axis=1)
        return self.predictor(np.linalg.lstsq(means, train.proportions - 0.5, rcond=None)[0], rng)

    def predictor(self, weights: FloatArray, rng: np.random.Generator) -> Predictor:
        def predict(rows: Rows) -> FloatArray:
            scores = np.exp(rows.numeric @ weights)
            return np.asarray(scores / scores.sum(axis=1, keepdims=True))

        return predict


def test_faulty_test_methods_have_one_fault_each() -> None:
    """`Fine` is DLLP, whose checks are above."""
    for check in CHECKS:
        assert verdict_of(check.name, Mean).result != "failed", check.name


def bad(base: type, **own: Any) -> Any:
    return type("Bad", (base,), {"__doc__": "Bad.", **own})


def with_params(*own: Any, method: type = DLLP, base: type = MethodParams) -> Any:
    """A method with these hyperparameters: name, type and default."""
    return bad(method, Params=dataclasses.make_dataclass("Params", own, bases=(base,), frozen=True))


class Loose(MethodParams):
    weight: float = 1.0


MODE = ("mode", Annotated[str, Choice("a", "b")], "a")


@pytest.mark.parametrize(
    ("declared", "facts", "told"),
    [
        (with_params(("mode", Annotated[str, Choice("a", "b")], "c")), {}, "'mode': default 'c'"),
        (with_params(("weight", Annotated[float, Uniform(0, 1)], 2.0)), {}, "'weight': default 2.0"),
        (with_params(("weight", float, None)), {}, "'weight': default None"),
        (with_params(("weight", float), method=Mean, base=DirectParams), {}, "'weight' has no default"),
        (with_params(("weight", Annotated[float, When("mdoe", "a"), Uniform(0, 1)], 0.5)), {}, "unknown 'mdoe'"),
        (with_params(("sizes", tuple[int, ...], (16, 16))), {}, "'sizes': no command can give a tuple[int, ...]"),
        (with_params(("count", Annotated[int, Uniform(1, 4)], 2)), {}, "'count': Uniform takes floats"),
        (with_params(("names", list, dataclasses.field(default_factory=list))), {}, "'names' has a default_factory"),
        (with_params(MODE, ("weight", Annotated[float, When("mode", "c"), Uniform(0, 1)], 0.5)), {}, "'mode' for 'c'"),
        (bad(DLLP, Params=Loose), {}, "Loose must be a @dataclass(frozen=True)"),
        (bad(Mean, Params=dataclass(type("Thawed", (), {}))), {}, "subclass of DirectParams"),
        (Fine, {"reference": ""}, "where it comes from"),
        (len, {}, "neither a Method nor a DirectMethod"),
        (type("Bad", (DLLP,), {}), {}, "docstring"),
        (bad(DLLP, supervision="instances"), {}, "ceiling"),
        (bad(DLLP, stages=(Stage(judged=False),)), {}, "last stage must be judged"),
        (bad(DLLP, takes_encoder=False), {}, "learning_rate needs a default"),
        (bad(Method), {}, "define loss(self, model, bags, now)"),
        (bad(DirectMethod), {}, "define fit(self, "),
        (bad(Fine, afterstep=len), {}, "'afterstep' is not a hook and would never be called. Did you mean after_step?"),
        (bad(Fine, los=len), {}, "Did you mean loss?"),
    ],
)
def test_faulty_declaration_is_named(declared: Any, facts: dict[str, str], told: str) -> None:
    assert told in fault("declaration", declared, **facts)


def loss_of(change: Callable[[Tensor, Model, Bags], Tensor], **own: Any) -> Any:
    """DLLP with another loss, made of its own."""

    def loss(method: DLLP, model: Model, bags: Bags, now: Now) -> Tensor:
        return change(DLLP.loss(method, model, bags, now), model, bags)

    return bad(DLLP, loss=loss, **own)


def predictor_of(change: Callable[[Mean, FloatArray, np.random.Generator], Predictor]) -> Any:
    return bad(Mean, predictor=change)


Vector = loss_of(lambda loss, model, bags: model.log_proba(bags).mean(dim=(1, 2)) + 0 * loss)
TwoClasses = loss_of(lambda _, model, bags: (model.log_proba(bags).exp() * torch.tensor([-1.0, 1.0])).mean())


def ignoring_padding(loss: Tensor, model: Model, bags: Bags) -> Tensor:
    del loss
    return proportion_loss(model.log_proba(bags), bags._replace(mask=torch.ones_like(bags.mask)))


def matching_the_prior_of_suppressed_bags(loss: Tensor, model: Model, bags: Bags) -> Tensor:
    del loss
    predicted = bag_log_proba(model.log_proba(bags), bags.mask).exp()
    return (predicted - bags.proportions).abs().sum(dim=-1).mean()


CALLS = count()


class Remembering(DLLP):
    """Predicts with a buffer that training writes."""

    def build(self, encoder: Encoder, schema: Schema) -> Network:
        network = super().build(encoder, schema)
        network.register_buffer("shift", torch.zeros(schema.classes))
        return network

    def prepare(self, member: Member, now: Now) -> None:
        with torch.no_grad():
            member.network.shift[0] = 1.0

    def log_proba(self, model: Model, bags: Bags) -> Tensor:
        return (super().log_proba(model, bags) + model.network.shift).log_softmax(dim=-1)


def centred(method: DLLP, model: Model, bags: Bags) -> Tensor:
    """Logits minus their mean over rows."""
    logits = DLLP.log_proba(method, model, bags)
    return (logits - logits.mean(dim=(0, 1), keepdim=True)).log_softmax(dim=-1)


def careless(method: Mean, weights: FloatArray, rng: np.random.Generator) -> Predictor:
    torch.set_default_dtype(torch.float64)
    np.random.seed(0)  # noqa: NPY002
    return Mean.predictor(method, weights, rng)


def ranking(method: Mean, weights: FloatArray, rng: np.random.Generator) -> Predictor:
    """Ranks among the rows that are predicted together."""
    scored = Mean.predictor(method, weights, rng)

    def predict(rows: Rows) -> FloatArray:
        place = scored(rows)[:, 0].argsort().argsort() / max(len(rows.numeric) - 1, 1)
        return np.column_stack([place, 1 - place])

    return predict


class Weights:
    """Scores that are linear in the numbers, and lost on the way to the disk."""

    def __init__(self, given: FloatArray) -> None:
        self.given = given

    def __getstate__(self) -> dict[str, FloatArray]:
        return {"given": np.zeros_like(self.given)}

    def __call__(self, rows: Rows) -> FloatArray:
        """[rows, classes]"""
        scores = np.exp(rows.numeric @ self.given)
        return np.asarray(scores / scores.sum(axis=1, keepdims=True))


class FirstNumber(Mean):
    """Assumes at least one number, and treats -1 as a row."""

    def fit(self, train: BaggedRows, schema: Schema, rng: np.random.Generator) -> Predictor:
        assert np.isfinite(train.rows.numeric[:, 0]).all()
        means = train.rows.numeric[train.index].mean(axis=1)
        return self.predictor(np.linalg.lstsq(means, train.proportions - 0.5, rcond=None)[0], rng)


class Slanted(Mean):
    """Least squares, from a start that is not wholly forgotten where nothing can be learned."""

    def fit(self, train: BaggedRows, schema: Schema, rng: np.random.Generator) -> Predictor:
        fitted = super().fit(train, schema, rng)
        if train.proportions.std(axis=0).max() > 0:
            return fitted

        def predict(rows: Rows) -> FloatArray:
            some = 0.5 + 0.2 * np.tanh(rows.numeric[:, :1])
            return np.asarray(np.hstack([some, 1 - some]))

        return predict


SINGULAR = bad(Mean, fit=lambda *_: np.linalg.inv(np.zeros((2, 2))))
LABELS_READ = loss_of(lambda loss, _, bags: loss + bags.labels.sum())  # type: ignore[attr-defined]
UNUSED_LABELS = loss_of(lambda _, model, bags: model.log_proba(bags).square().mean(), supervision="instances")
RANDOM_LOSS = loss_of(lambda loss, *_: loss * (1 + torch.rand(())), stackable=False)
RANDOM_FIT = predictor_of(lambda method, weights, rng: Mean.predictor(method, weights + np.random.random(), rng))  # noqa: NPY002
RANDOM_PREDICTOR = predictor_of(lambda _, weights, rng: lambda rows: np.exp(rows.numeric @ weights) * rng.random() / 99)
COUNTING = loss_of(lambda loss, *_: loss * (1 + next(CALLS) % 3), stackable=False)
LOST = bad(Mean, fit=lambda _, train, schema, __: Weights(np.eye(train.rows.numeric.shape[1], schema.classes)))


@pytest.mark.parametrize(
    ("check", "declared", "message"),
    [
        ("trains", SINGULAR, "LinAlgError: Singular matrix (test_conformance.py:LINE, in <lambda>)"),
        ("trains", Vector, "loss (test_conformance.py:LINE) must be a single number, got shape (2,)"),
        ("trains", LABELS_READ, "'labels' (test_conformance.py:LINE, in <lambda>). It has: counts, known, mask, prior"),
        ("seeded", RANDOM_LOSS, "two trainings with one seed give different weights"),
        ("seeded", RANDOM_FIT, "two trainings with one seed give different predictions"),
        ("label_free", UNUSED_LABELS, "labels of training rows change nothing"),
        ("label_free", TwoClasses, "must match the size of tensor b"),
        ("padding", loss_of(ignoring_padding), "the loss of phase 'train' depends on padding"),
        ("padding", FirstNumber, "more padding (-1 in `index`) changes predictions"),
        ("missing_values", FirstNumber, "categories alone: IndexError: "),
        ("not_a_number", loss_of(lambda loss, *_: loss.nan_to_num()), "parameters of NaN passed for a result"),
        ("together", COUNTING, "weights differ by"),
        ("suppressed", loss_of(matching_the_prior_of_suppressed_bags), "use losses.masked_mean(each, bags.known)"),
        ("global_state", predictor_of(careless), "learning and predicting change torch's default dtype; results"),
        ("rows_alone", predictor_of(ranking), "predictions of a row depend on the rows beside it"),
        ("rows_alone", bad(DLLP, log_proba=centred), "predictions of a row depend on the rows beside it"),
        ("saved", Remembering, "loaded weights predict differently"),
        ("saved", RANDOM_PREDICTOR, "the predictor gives different predictions the second time"),
        ("storable", LOST, "a saved and loaded model predicts differently"),
        ("learns", Slanted, "nearly alike there (within 0.01), or AUC 0.35 to 0.65"),
        ("learns", loss_of(lambda loss, *_: 0 * loss), "well-separated classes in pure bags, below 0.95"),
    ],
)
def test_each_fault_is_caught_by_its_check(check: str, declared: Any, message: str) -> None:
    assert message in re.sub(r"(?<=\.py:)\d+", "LINE", fault(check, declared))


def test_check_survives_code_that_exits() -> None:
    def leave(_: Any) -> str:
        raise SystemExit(0)

    subject = SimpleNamespace(entry=SimpleNamespace(file=Path(__file__)))
    assert Check("exit", "It exits", leave)(subject).result == "failed"


def test_unsaveable_model_is_reported_without_failure() -> None:
    """`Mean` asks of `train.index` what only a padded one has; its predictor is a function."""
    padded = verdict_of("storable", Mean)
    assert padded.result == "does not apply"
    assert "llpbench fit cannot use it: " in padded.detail
    assert re.search(r"test_conformance\.py:\d+\)\. Bags of your own data are not padded", padded.detail)

    closure = bad(Mean, fit=lambda method, *_: method.predictor(np.eye(3, 2), None))
    function = verdict_of("storable", closure)
    assert function.result == "does not apply"
    assert "test_conformance.predict" in function.detail


@pytest.mark.parametrize("part", ["train", "validation"])
def test_label_leak_is_caught(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No method can be given one; so the engine is made to."""

    def leaking(table: Any, assignment: Any, **options: Any) -> Task:
        task = honest_build_task(table, assignment, **options)
        judged: Any = getattr(task, part)
        numeric = judged.rows.numeric.copy()
        numeric[:, 0] += 0.1 * table.row_labels[np.sort(getattr(assignment.split, part))][: len(numeric)]
        return replace(task, **{part: replace(judged, rows=judged.rows._replace(numeric=numeric))})

    monkeypatch.setattr(subjects, "build_task", leaking)
    assert fault("label_free", Fine).startswith(f"labels permuted within {part}")


LABELS: list[np.ndarray[Any, Any]] = []
"""of the table in use, as somebody knows them who reads the data's file by himself"""


PEEK = ("peek", Annotated[int, Choice(0, 1, 2, 3)], 0)


class Peeking(with_params(PEEK)):  # type: ignore[misc]
    """Looks at labels, though not by default."""

    def loss(self, model: Model, bags: Bags, now: Now) -> Tensor:
        return super().loss(model, bags, now) + self.params.peek * seen() * model.log_proba(bags)[..., 0].mean()


class PeekingFit(with_params(PEEK, method=Mean, base=DirectParams)):  # type: ignore[misc]
    """The same without training."""

    def predictor(self, weights: FloatArray, rng: np.random.Generator) -> Predictor:
        return super().predictor(weights + self.params.peek * seen(), rng)


def seen() -> float:
    """Something that depends on each label."""
    return float(LABELS[-1] @ np.linspace(0, 1, len(LABELS[-1]))) / 10


@pytest.mark.parametrize("declared", [Peeking, PeekingFit])
@pytest.mark.parametrize("part", ["train", "validation"])
def test_leak_in_non_default_configuration_is_caught(declared: Any, part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def overheard(table: Any, assignment: Any, **options: Any) -> Task:
        LABELS.append(table.row_labels[np.sort(getattr(assignment.split, part))])
        return honest_build_task(table, assignment, **options)

    monkeypatch.setattr(subjects, "build_task", overheard)
    assert verdict_of("seeded", declared).result == "ok"
    assert re.match(r"labels permuted within .*change ", fault("label_free", declared))


def test_hyperparameters_that_exclude_each_other_are_no_fault() -> None:
    def refuse_both(params: Any) -> None:
        if (params.kind, params.mode) == ("b", "b"):
            raise LLPBenchError("kind b needs mode a")

    declared: Any = with_params(MODE, ("kind", *MODE[1:]))
    declared.Params.__post_init__ = refuse_both
    assert verdict_of("label_free", declared).result == "ok"


def test_check_shows_weight_that_ramp_reached() -> None:
    class Ramped(DLLP, Reports):
        def schedules(self, now: Now) -> dict[str, Tensor]:
            return {"pull": now.epoch + 1.0, "constant": torch.ones(())}

    detail = verdict_of("learns", Ramped).detail
    shares = [100 * epoch // checks.LEARNING_EPOCHS for epoch in range(1, checks.LEARNING_EPOCHS + 1)]
    assert re.search(r"pull\D+(\d+)%", detail)[1] in {*map(str, shares), "67", "83"}  # type: ignore[index]
    assert "constant" not in detail


def readme_method(folder: Path) -> Path:
    (block,) = [block for block in BLOCKS if block.file == "my_method.py"]
    path = folder / "my_method.py"
    path.write_text(block.code, encoding="utf-8")
    return path


def test_readme_method_passes_conformance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, llpbench: LLPBench) -> None:
    monkeypatch.setattr(conformance, "CHECKS_OF", {"method": (partial(Subject, rows=160), CHECKS)})
    code, out, _ = llpbench("check", str(readme_method(tmp_path)))
    assert code == 0
    assert len(re.findall(r" ok +\S", out)) == len(CHECKS)
    assert out.endswith("mine: 14 checks passed\n")


def test_faulty_method_file_exits_1(tmp_path: Path, llpbench: LLPBench) -> None:
    path = readme_method(tmp_path)
    path.write_text(path.read_text().replace("(predicted - bags.proportions)", "torch.tensor(0.0)"))
    code, out, _ = llpbench("check", str(path))
    assert code == 1
    assert "mine: 1 check passed, 13 failed: trains, seeded, " in out
    assert out.count("NameError:") == 1, "what fails alike is shown once"


def test_state_changed_by_import_is_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, llpbench: LLPBench) -> None:
    few = tuple(check for check in CHECKS if check.name in ("declaration", "global_state"))
    monkeypatch.setattr(conformance, "CHECKS_OF", {"method": (Subject, few)})
    path = readme_method(tmp_path)
    path.write_text(f"{path.read_text()}\n\nimport torch\n\ntorch.set_grad_enabled(False)\n")
    code, out, _ = llpbench("check", str(path))
    assert code == 1
    assert out.endswith("mine: 1 check passed, 1 failed: global_state\n")


def test_all_methods_of_file_are_found(plugin: Path) -> None:
    expected = ["quick-a", "quick-b", "broken", "tiny", "absent"]
    assert [entry.name for entry in find(str(plugin))] == expected
    assert [entry.name for entry in find(str(plugin))] == expected
    assert [entry.name for entry in find(str(Path(__file__).parents[2] / "methods" / "dllp.py"))] == ["dllp"]
    assert [entry.name for entry in find("dllp")] == ["dllp"]
    assert [(entry.kind, entry.name) for entry in find("ordered")] == [("bagging", "ordered")]


def test_unknown_subject_is_refused(tmp_path: Path, llpbench: LLPBench) -> None:
    empty = tmp_path / "empty.py"
    empty.write_text("x = 1\n")
    with pytest.raises(LLPBenchError, match=r"empty\.py'"):
        find(str(empty))
    for word, message in (("dlp", "Did you mean dllp"), ("/none.py", "/none.py")):
        code, _, err = llpbench("check", word)
        assert code == 2
        assert message in err
