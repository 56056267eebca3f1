"""The checks of methods, and how a check is run.

A check is a function with a one-line docstring, which is its title. It returns a line of detail, or raises `FaultError`
with advice for the method's author, or `InapplicableError` with the reason.
"""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from llpbench.conformance.subject import EPOCHS, FaultError, InapplicableError, Subject, require, with_awkward
from llpbench.core.bags import Bags, Rows, Task
from llpbench.core.criteria import CRITERIA
from llpbench.core.errors import LLPBenchError
from llpbench.core.files import temporary_folder
from llpbench.core.global_state import by_import
from llpbench.core.method import Method, Now
from llpbench.core.metrics import holdout_criteria
from llpbench.core.model import Model, Network, Random
from llpbench.core.ranges import ranges
from llpbench.core.text import fault
from llpbench.data.baggings import grouped
from llpbench.data.tasks import count_labels
from llpbench.data.toy import constant_proportions, permuted_within, pure_bags, toy_assignment, toy_table
from llpbench.owndata.classifier import LLPClassifier
from llpbench.training.declaration import course_faults, faults

LEARNING_EPOCHS, _STOPPING_EPOCHS = 6, 3
"""epochs of training that must learn, and of training that must stop early"""
_FEW_ROWS = 240
"""most rows of a check that trains several times: many for validation, so that small differences show"""
LEARNED = 0.95
"""smallest AUC of a method that has learned"""
CLOSE, _CLOSE_TRAINED = 1e-4, 1e-3
"""largest difference of predictions due to rounding alone, and of weights, whose training amplifies it"""
_ALIKE, _NEAR_CHANCE = 0.01, 0.15
"""largest difference of probabilities that count as equal, and of AUC from one half by chance"""


@dataclass(frozen=True)
class Check:
    """One property that all entries of a kind must have."""

    name: str
    title: str
    function: Callable[[Any], str]

    def __call__(self, subject: Any) -> Verdict:
        """Run the check on a subject. Any exception of the subject becomes a verdict."""
        try:
            return Verdict(self, "ok", self.function(subject))
        except InapplicableError as reason:
            return Verdict(self, "does not apply", str(reason))
        except (FaultError, LLPBenchError) as error:
            return Verdict(self, "failed", str(error))
        except (Exception, SystemExit) as error:
            return Verdict(self, "failed", fault(error, subject.entry.file))


@dataclass(frozen=True)
class Verdict:
    """Outcome of a check."""

    check: Check
    result: Literal["ok", "failed", "does not apply"]
    detail: str


def _declaration(subject: Subject) -> str:
    """Its declaration is complete and consistent."""
    require(not (found := faults(subject.entry, formal=True)), "; ".join(found))
    declared = subject.declared
    if not subject.direct:
        require(not (found := [*course_faults(subject.method())]), "; ".join(found))
        own = declared.takes_encoder or declared.Params().learning_rate is not None
        require(own, "without an encoder, learning_rate needs a default")
    searched, declares = ranges(declared.Params), fields(declared.Params)
    without = [field.name for field in declares if field.name not in searched]
    return f"{len(declares)} hyperparameters" + (f"; no range to search: {', '.join(without)}" if without else "")


def _trains(subject: Subject) -> str:
    """It trains, and predicts probabilities."""
    proba = subject.learned.proba
    if not subject.direct:
        return f"{subject.learned.source.stack.theta.shape[1]:,} parameters"
    return "probabilities" if np.allclose(proba.sum(axis=1), 1, atol=1e-4) else "scores in [0, 1]"


def _seeded(subject: Subject) -> str:
    """The seed determines its result."""
    first, (second, _) = subject.learned, subject.again
    for criterion in CRITERIA:
        what = "predictions" if subject.direct else "weights"
        where = "the generator that `fit` is given" if subject.direct else "model.random"
        same = np.array_equal(first.kept[criterion], second.kept[criterion])
        require(same, f"two trainings with one seed give different {what}: draw random numbers only from {where}")
    other = subject.learn(subject.toy(), seed=1).kept
    if np.array_equal(other["l1"], first.kept["l1"]):
        require(subject.direct, "another seed gives the same weights")
        return "bit-identical; another seed gives the same"
    return "bit-identical; another seed differs"


def _label_free(subject: Subject) -> str:
    """No label of a single row reaches it."""
    sees, control = (subject.declared.supervision == name for name in ("instances", "validation"))
    rows = min(subject.rows, _FEW_ROWS)
    # a method may look at labels only if it is not in its default configuration
    for trained, classes, unequal in ((subject.varied(), 2, False), (subject, subject.most_classes, True)):
        table, assignment = toy_table(rows, classes), toy_assignment(rows, unequal=unequal)
        assert len(assignment.validation.ravel()) == len(assignment.split.validation)  # no label outside a bag

        # patience 1: the end of a stage, which labels of validation rows decide, must make no difference either
        first, within_training, within_validation = (
            trained.learn(subject.task(each, assignment), epochs=_STOPPING_EPOCHS, patience=1)
            for each in (table, *(permuted_within(table, bags) for bags in (assignment.train, assignment.validation)))
        )
        differ = [name for name in CRITERIA if not np.array_equal(first.kept[name], within_training.kept[name])]
        require(sees or not differ, f"labels permuted within training bags change what {', '.join(differ)} selects")
        require(not sees or bool(differ), 'labels of training rows change nothing: declare supervision = "bags"')
        if control:
            what = 'labels of validation rows change nothing: declare supervision = "bags"'
            require(not np.array_equal(first.proba, within_validation.proba), what)
            continue
        for name in (criterion.name for criterion in CRITERIA.values() if criterion.regime == "coarse"):
            same = np.array_equal(first.kept[name], within_validation.kept[name])
            require(same, f"labels permuted within validation bags change what {name} selects")
            # few epochs: the same may be best all the same, with another value
            same = first.values.get(name) == within_validation.values.get(name)
            require(same, f"labels permuted within validation bags change the value of {name}")
    if control:
        return "it sees labels of validation rows, as declared, and no label of a training row"
    return "it is declared to see labels, and does" if sees else "labels permuted within bags change no bit"


def _padding(subject: Subject) -> str:
    """Bags may differ in size, and padding has no effect."""
    task = subject.toy(unequal=True)
    learned = subject.learn(task)
    if subject.direct:
        index = np.pad(task.train.index, ((0, 0), (0, 3)), constant_values=-1)
        wider = subject.learn(replace(task, train=replace(task.train, index=index)))
        difference = float(np.abs(wider.proba - learned.proba).max())
        require(difference < CLOSE, f"more padding (-1 in `index`) changes predictions by {difference:.2g}")
        return "more padding changes nothing"
    if all(stage.unit == "rows" for stage in learned.source.members[0].method.stages):
        return "trained; its steps draw single rows, which need no padding"
    network, method, bags = learned.step(task)
    dirty = [_with_garbage(bags, task, seed) for seed in (1, 2)]
    _require_equal_losses(network, method, dirty, "padding", "use bags.mask")
    one, other = (method.log_proba(Model(network), each)[bags.mask] for each in dirty)
    require(torch.allclose(one, other, atol=1e-5), "predictions depend on padding: use bags.mask")
    return "garbage in the padding changes neither loss nor predictions"


def _suppressed(subject: Subject) -> str:
    """Suppressed counts have no effect on its loss."""
    if subject.declared.supervision != "bags":
        raise InapplicableError("it sees labels")
    if subject.direct:
        raise InapplicableError("direct methods get only bags with known counts")
    task = subject.toy()
    some = np.where(np.arange(len(task.train.counts)) % 3 == 0, np.nan, 1.0)[:, None]
    subject.learn(replace(task, train=replace(task.train, counts=task.train.counts * some)), epochs=1)
    network, method, bags = subject.learned.step(task)
    first, second = bags.proportions
    bags = bags._replace(known=torch.tensor([True, False]), counts=bags.counts * torch.tensor([[1.0], [0.0]]))
    told = [bags._replace(proportions=torch.stack([first, share])) for share in (second.flip(-1), bags.prior)]
    what = "the `proportions` of bags that are not `known`, which are only the prior"
    _require_equal_losses(network, method, told, what, "use losses.masked_mean(each, bags.known)")
    return "their placeholder proportions do not change the loss"


def _missing_values(subject: Subject) -> str:
    """Missing, constant and unseen values do no harm."""
    assert subject.learned  # a fault without missing values belongs to another check
    return with_awkward(subject, lambda *awkward: subject.learn(subject.task(*awkward), epochs=1), subject.rows)


def _not_a_number(subject: Subject) -> str:
    """NaN ends as a failure, never as a result."""
    if subject.direct:
        raise InapplicableError("no parameters in training; predictions that are not finite are failures anyway")
    assert subject.learned  # otherwise a fault of another kind would pass for one caused by NaN
    tasks = {seed: subject.toy(seed) for seed in (0, 1)}
    stack = subject.population(tasks).stack
    nan = {name: torch.full(shape, math.nan) for name, shape in zip(stack.names, stack.shapes, strict=True)}
    try:
        healthy, bad = subject.population(tasks, start={1: nan}).train()
    except Exception as error:
        return f"stops all that train beside it: {fault(error, subject.entry.file)}"
    require(bool(bad.failure), "parameters of NaN passed for a result: let NaN through to the loss")
    require(not healthy.failure, f"another member's NaN reached a healthy one: {healthy.failure}")
    return bad.failure


def _together(subject: Subject) -> str:
    """Members trained together get the same results as alone."""
    if subject.direct:
        raise InapplicableError("each seed is fitted by itself")
    tasks = {seed: subject.toy(seed) for seed in (0, 1, 2)}
    outcomes, largest = subject.trained(tasks).outcomes, 0.0
    advice = "Perhaps `prepare` or `loss` changes self, which seeds share."
    for seed in (0, 2):
        (alone,) = subject.trained({seed: tasks[seed]}).outcomes
        for name, choice in alone.selected.items():
            other = outcomes[seed].selected[name]
            difference = float((choice.weights - other.weights).abs().max())
            told = f"{name} selects epoch {choice.epoch} alone, {other.epoch} among three"
            require(choice.epoch == other.epoch, f"{told}. {advice}")
            told = f"weights differ by {difference:.2g} between alone and among three"
            require(difference < _CLOSE_TRAINED, f"{told}. {advice}")
            largest = max(largest, difference)
    apart = "" if subject.declared.stackable else "not stackable, so trained one by one; "
    return apart + (f"weights within {largest:.1g}" if largest else "bit-identical weights")


def _global_state(subject: Subject) -> str:
    """It leaves the global state of its process unchanged."""
    advice = "results of what runs next in the process depend on it: keep to rng and to `with` blocks"
    imported = by_import.get(subject.entry.module, [])
    require(not imported, f"importing its file changes {', '.join(imported)}; {advice}")
    _, changed = subject.again
    require(not changed, f"learning and predicting change {', '.join(changed)}; {advice}")
    return "nothing was changed"


def _rows_alone(subject: Subject) -> str:
    """It scores each row independently."""
    rows, learned = subject.toy().test.rows, subject.learned
    for few in (np.arange(1), np.arange(7), np.arange(len(rows.numeric))[::-1]):
        some = Rows(*(part[few] for part in rows))
        difference = float(np.abs(learned.predict(some) - learned.proba[few]).max())
        require(difference < CLOSE, f"predictions of a row depend on the rows beside it: {difference:.2g} apart")
    return "other rows do not change the prediction of a row"


def _saved(subject: Subject) -> str:
    """A trained model predicts the same, also with loaded weights."""
    task, learned = subject.toy(), subject.learned
    if subject.direct:
        again = np.array_equal(learned.predict(task.test.rows), learned.proba)
        require(again, "the predictor gives different predictions the second time")
        return "called again, it predicts the same"
    file = io.BytesIO()
    torch.save(learned.kept["l1"], file)
    file.seek(0)
    weights = torch.load(file, weights_only=True)
    proba = subject.population({0: task}).predict(0, weights[None], task.test.rows)
    difference = float(np.abs(proba[0] - learned.proba).max())
    kept = "only parameters are kept, neither buffers nor attributes of the method"
    require(difference == 0, f"loaded weights predict differently (by {difference:.2g}): {kept}")
    return "loaded weights predict the same"


def _storable(subject: Subject) -> str:
    """A model that `llpbench fit` trains with it can be saved and loaded."""
    if subject.declared.supervision != "bags":
        raise InapplicableError("llpbench fit does not use labels of rows")
    assert subject.learned  # otherwise a fault of every training would be reported as one of `fit`
    rows = np.arange(subject.rows)
    table, bags = toy_table(subject.rows), rows // 32
    categories = [f"c{code}" for code in table.categorical[:, 0]]
    frame = pd.DataFrame(table.numeric).assign(category=categories).rename(columns=str)
    counts = count_labels(table.row_labels, grouped(rows, bags), 2)
    model = LLPClassifier(subject.name, params=subject.params, epochs=EPOCHS)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # so short a training warns of all that it has not learned
            model.fit(frame, bags, counts=counts)
    except Exception as error:  # the benchmark may still be able to use it
        told = f"llpbench fit cannot use it: {fault(error, subject.entry.file).rstrip('.')}. "
        padded = "Bags of your own data are not padded: train.index has no columns there, iterate over it bag by bag"
        raise InapplicableError(told + padded * subject.direct) from error
    with temporary_folder() as folder:
        try:
            model.save(folder / "model")
        except LLPBenchError as error:
            raise InapplicableError(str(error)) from error
        loaded = LLPClassifier.load(folder / "model")
    same = np.array_equal(loaded.predict_proba(frame), model.predict_proba(frame))
    require(same, "a saved and loaded model predicts differently: keep all it needs in its attributes")
    return "saved and loaded, it predicts the same"


def _learns(subject: Subject) -> str:
    """It learns pure bags; constant proportions do no harm."""
    found, ramps = {}, ""
    for classes in range(2, subject.most_classes + 1):
        task = subject.task(*pure_bags(classes))
        learned = subject.learn(task, epochs=LEARNING_EPOCHS)
        proba, ramps = learned.proba, learned.ramps()
        if subject.entry.facts["role"] == "floor" and (proba == proba[0]).all():
            raise InapplicableError("a floor that predicts the same for every row")
        auc = holdout_criteria(proba, task.test)["auc"]
        require(auc >= LEARNED, f"AUC {auc:.3f} on {classes} well-separated classes in pure bags, below {LEARNED}")
        found[classes] = auc
    task = subject.task(*constant_proportions())
    proba = subject.learn(task, epochs=1).proba
    auc, spread = holdout_criteria(proba, task.test)["auc"], float(np.ptp(proba, axis=0).max())
    alike = spread < _ALIKE or abs(auc - 0.5) < _NEAR_CHANCE
    told = f"AUC {auc:.3f}, with probabilities {spread:.2g} apart, if all bags have the same proportions"
    harmless = f"nearly alike there (within {_ALIKE:g}), or AUC {0.5 - _NEAR_CHANCE:g} to {0.5 + _NEAR_CHANCE:g}"
    what = f"{told}: such bags carry no information about single rows, so predictions must be {harmless}"
    require(not subject.direct or subject.declared.supervision != "bags" or alike, what)
    return "AUC " + ", ".join(f"{auc:.3f} ({classes} classes)" for classes, auc in found.items()) + ramps


def checks_of(*functions: Callable[[Any], str]) -> tuple[Check, ...]:
    """Return checks made from functions: their names, without the underscore and `_of_KIND`, and docstrings."""
    return tuple(
        Check(function.__name__[1:].partition("_of_")[0], (function.__doc__ or "").rstrip("."), function)  # type: ignore[attr-defined]
        for function in functions
    )


def _require_equal_losses(network: Network, method: Method, bags: Sequence[Bags], what: str, advice: str) -> None:
    for phase in method.phases:
        now = Now(method.stages[-1].name, phase.name, *torch.tensor([1.0, 2.0, 8.0, 16.0]))
        first, second = (
            float(method.loss(Model(network, Random(torch.tensor(7))), each, now).detach()) for each in bags
        )
        told = f"the loss of phase {phase.name!r} depends on {what} ({first:.6g} or {second:.6g}): {advice}"
        require(math.isclose(first, second, rel_tol=1e-5, abs_tol=1e-6), told)


def _with_garbage(bags: Bags, task: Task, seed: int) -> Bags:
    """Return the bags with random features in the padding."""
    rng = np.random.default_rng(seed)

    def garbage(like: Tensor, values: Any) -> Tensor:
        return torch.where(bags.mask[..., None], like, torch.as_tensor(values).to(like.dtype))

    numeric, categorical, missing = bags.rows
    rows = Rows(
        garbage(numeric, 10 * rng.normal(size=numeric.shape)),
        garbage(categorical, rng.integers(0, task.schema.cardinalities, size=categorical.shape)),
        garbage(missing, rng.random(missing.shape) < 0.5),
    )
    return bags._replace(rows=rows)


CHECKS = (
    *checks_of(_declaration, _trains, _seeded, _label_free, _padding, _suppressed),
    *checks_of(_missing_values, _not_a_number, _together, _global_state, _rows_alone, _saved, _storable, _learns),
)
