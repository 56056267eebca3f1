"""What every method must hold to, checked on toy data in seconds: `llpbench check`, and the tests of this repository.

A check is a function with a one-line docstring, which is its title. It returns a line of detail, or raises `FaultError`
with the line that the method's author needs, or `InapplicableError` with the reason.
"""

from __future__ import annotations

import importlib.util
import io
import math
import pickle
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Literal, get_args, get_type_hints

import numpy as np
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from llpbench.bags import Assignment, Bags, FloatArray, Rows, Table, Task, build_task
from llpbench.cell import Protocol
from llpbench.compute import one_line
from llpbench.criteria import CRITERIA
from llpbench.encoders.mlp import MLPEncoder, MLPParams
from llpbench.errors import LLPBenchError
from llpbench.method import DirectMethod, DirectParams, Method, MethodParams, Predictor, Progress, Stage
from llpbench.metrics import holdout_criteria
from llpbench.model import Encoder, Model, NoEncoder, Random
from llpbench.population import Machine, Member, Outcome, Population
from llpbench.ranges import Choice, Uniform, ranges
from llpbench.registry import METHODS, Entry, load_plugin
from llpbench.seeding import generator
from llpbench.toy import awkward_tables, constant_proportions, permuted_within, pure_bags, toy_assignment, toy_table

EPOCHS, LEARNING_EPOCHS = 2, 20
"""of a training that only has to run, and of one that has to learn"""
LEARNED = 0.95
"""AUC that says so"""
CLOSE = 1e-4
"""difference of weights that rounding alone explains"""
TOO_DEAR = 50.0
"""times the time or memory of DLLP"""
STEPS_OF_A_FIT = 100
"""of DLLP, with which the fit of a direct method is compared"""
ENCODER = MLPParams(token_dim=4, numeric_hidden=8, hidden=32, dim=16)
USUAL = {"learning_rate": 3e-3, "hidden": 32}
"""hyperparameters that are the encoder's own where a method declares none"""


class FaultError(Exception):
    """A check found a fault."""


class InapplicableError(Exception):
    """A check has nothing to say of this method."""


Result = Literal["ok", "failed", "does not apply"]


@dataclass(frozen=True)
class Check:
    """One thing that every method must hold to."""

    name: str
    title: str
    function: Callable[[Subject], str]

    def __call__(self, subject: Subject) -> Verdict:
        """Whatever goes wrong in a method is a verdict, never an exception."""
        try:
            return Verdict(self, "ok", self.function(subject))
        except InapplicableError as reason:
            return Verdict(self, "does not apply", str(reason))
        except (FaultError, LLPBenchError) as error:
            return Verdict(self, "failed", str(error))
        except Exception as error:
            return Verdict(self, "failed", one_line(error))


@dataclass(frozen=True)
class Verdict:
    """What a check found."""

    check: Check
    result: Result
    detail: str


@dataclass(frozen=True)
class Learned:
    """What a method made of a task."""

    kept: Mapping[str, Any]
    """by criterion: a neural method's weights [parameters], a direct method's predictions"""
    proba: FloatArray
    """[rows, classes] predictions for the test rows"""
    source: Population | Predictor


class Subject:
    """A method and what it takes to train it on toy data."""

    def __init__(self, entry: Entry) -> None:
        self.entry = entry
        self.name = entry.name
        self.declared: Any = entry.load()
        self.direct = _is(self.declared, DirectMethod)
        self.most_classes = 2 if entry.facts["classes"] == "binary" else 3

    def method(self, epochs: int = EPOCHS) -> Any:
        """The method with its defaults; stages with epochs of their own have no more than `epochs`."""
        if self.direct:
            return self.declared()
        params = self.declared.Params()
        method = self.declared(
            replace(params, **{name: value for name, value in USUAL.items() if getattr(params, name) is None})
        )
        method.stages = tuple(replace(s, epochs=min(s.epochs, epochs)) if s.epochs else s for s in method.stages)
        return method

    def task(self, table: Table, assignment: Assignment) -> Task:
        """A table in bags, as this method is given it."""
        return build_task(table, assignment, supervision=self.declared.supervision)

    def toy(self, seed: int = 0, **options: Any) -> Task:
        """The usual task; its bags are drawn with `seed`."""
        return self.task(toy_table(), toy_assignment(seed=seed, **options))

    def population(
        self, tasks: Mapping[int, Task], epochs: int = EPOCHS, start: Mapping[int, Mapping[str, Tensor]] | None = None
    ) -> Population:
        """Untrained members by seed; `start`: parameters of some of them by name."""
        method = self.method(epochs)
        members = [
            Member(seed, method, task, method.params.learning_rate, (start or {}).get(seed))
            for seed, task in tasks.items()
        ]

        def encoder(task: Task) -> Encoder:
            return MLPEncoder(task.schema, ENCODER, method.params.dropout) if method.takes_encoder else NoEncoder()

        return Population(members, encoder, Protocol(epochs=epochs, patience=epochs), Machine())

    def learn(self, task: Task, seed: int = 0, epochs: int = EPOCHS) -> Learned:
        """Train or fit, and predict the test rows. Raises `FaultError` where what comes out is no prediction."""
        if self.direct:
            predictor: Predictor = self.method().fit(task.train, task.schema, generator(seed, "training"))
            return Learned(dict.fromkeys(CRITERIA, proba := _valid(predictor(task.test.rows), task)), proba, predictor)
        population = self.population({seed: task}, epochs)
        kept = _weights(_train(population)[0])
        proba, z = population.predict(0, kept["l1"][None], task.test)
        if z.ndim != 3 or z.shape[1] != len(task.test.labels) or not np.isfinite(z).all():
            raise FaultError(f"`represent` must give finite [rows, dim], however: shape {z.shape[1:]}")
        return Learned(kept, _valid(proba[0], task, sums=True), population)

    @cached_property
    def learned(self) -> Learned:
        """The usual task, learned."""
        return self.learn(self.toy())


# -- the checks --------------------------------------------------------------------------------------------------------


def declaration(subject: Subject) -> str:
    """What it declares is complete and consistent."""
    entry, declared = subject.entry, subject.declared
    base: Any = DirectMethod if subject.direct else Method
    kind = "direct" if subject.direct else "neural"
    known = subject.direct or _is(declared, Method)
    _demand(known, f"{declared.__name__} is neither a Method nor a DirectMethod: make it a subclass of one")
    _demand(entry.facts["kind"] == kind, f'{declared.__name__} is a {base.__name__}: register it with kind="{kind}"')
    _demand(bool(entry.summary), f"{declared.__name__} needs a docstring; its first line is shown in lists")
    role, classes, reference = (entry.facts[fact] for fact in ("role", "classes", "reference"))
    _demand(role in ("", "floor", "ceiling"), f"role must be floor or ceiling, however: {role!r}")
    _demand(bool(reference or role), 'state where it comes from: @register_method(..., reference="Doe 2026")')
    _demand(classes in ("multi", "binary"), f"classes must be multi or binary, however: {classes!r}")
    supervision = declared.supervision
    _demand(supervision in ("bags", "instances"), f"supervision must be bags or instances, however: {supervision!r}")
    _demand(supervision == "bags" or role == "ceiling", 'what sees labels of rows is a ceiling: role="ceiling"')
    number, without = _hyperparameters(declared.Params, DirectParams if subject.direct else MethodParams)
    if not subject.direct:
        _demand(subject.method().stages[-1].judged, "the last stage must be judged: nothing else selects an epoch")
        own = declared.takes_encoder or declared.Params().learning_rate is not None
        _demand(own, "without an encoder there is none whose learning rate it could take: give learning_rate a default")
    return f"{number} hyperparameters" + (f"; no range to search: {', '.join(without)}" if without else "")


def trains(subject: Subject) -> str:
    """It trains, and predicts probabilities."""
    proba = subject.learned.proba
    if not subject.direct:
        return f"{subject.learned.source.stack.theta.shape[1]:,} parameters"  # type: ignore[union-attr]
    return "probabilities" if np.allclose(proba.sum(axis=1), 1, atol=1e-4) else "scores in [0, 1]"


def seeded(subject: Subject) -> str:
    """Its seed decides the result."""
    first, second = subject.learned, subject.learn(subject.toy())
    for criterion in CRITERIA:
        what = "predictions" if subject.direct else "weights"
        where = "the generator that `fit` is given" if subject.direct else "model.random"
        same = np.array_equal(first.kept[criterion], second.kept[criterion])
        _demand(same, f"two trainings with one seed give different {what}: draw random numbers from {where} alone")
    other = subject.learn(subject.toy(), seed=1).kept
    if np.array_equal(other["l1"], first.kept["l1"]):
        _demand(subject.direct, "another seed gives the same weights")
        return "bit-identical; another seed gives the same"
    return "bit-identical; another seed differs"


def label_free(subject: Subject) -> str:
    """No label of a single row reaches it."""
    sees = subject.declared.supervision == "instances"
    for classes, unequal in ((2, False), (subject.most_classes, True)):
        table, assignment = toy_table(classes=classes), toy_assignment(unequal=unequal)
        assert len(assignment.validation.ravel()) == len(assignment.split.validation)  # no label outside a bag
        kept = subject.learn(subject.task(table, assignment)).kept if unequal else subject.learned.kept
        permuted = subject.learn(subject.task(permuted_within(table, assignment.train), assignment)).kept
        differ = [criterion for criterion in CRITERIA if not np.array_equal(kept[criterion], permuted[criterion])]
        _demand(sees or not differ, f"labels permuted within training bags change what {', '.join(differ)} selects")
        _demand(not sees or bool(differ), 'labels of training rows change nothing: declare supervision = "bags"')
        permuted = subject.learn(subject.task(permuted_within(table, assignment.validation), assignment)).kept
        for criterion in CRITERIA.values():
            same = criterion.regime == "fine" or np.array_equal(kept[criterion.name], permuted[criterion.name])
            _demand(same, f"labels permuted within validation bags change what {criterion.name} selects")
    return "it is declared to see labels, and does" if sees else "labels permuted within bags change no bit"


def three_classes(subject: Subject) -> str:
    """It knows more than two classes."""
    if subject.most_classes == 2:
        raise InapplicableError("declared binary")
    subject.learn(subject.task(toy_table(classes=3), toy_assignment(unequal=True)))
    return "trained on three, in bags of different sizes"


def padding(subject: Subject) -> str:
    """Bags may differ in size, and padding carries nothing."""
    task = subject.toy(unequal=True)
    learned = subject.learn(task)
    if subject.direct:
        index = np.pad(task.train.index, ((0, 0), (0, 3)), constant_values=-1)
        wider = subject.learn(replace(task, train=replace(task.train, index=index)))
        difference = float(np.abs(wider.proba - learned.proba).max())
        _demand(difference < CLOSE, f"more padding (-1 in `index`) changes predictions by {difference:.2g}")
        return "more padding changes nothing"
    population: Any = learned.source
    method: Method = population.members[0].method
    if all(stage.unit == "rows" for stage in method.stages):
        return "trained; its steps draw single rows, which need no padding"
    network = population.stack.write_out(0, learned.kept["l1"])
    taken = population.data.take("bags", torch.tensor([0]), torch.tensor([[0, 1]]))
    bags = Bags(Rows(*(part[0] for part in taken.rows)), *(part[0] for part in taken[1:]))
    now = Progress(*torch.tensor([1.0, 2.0, 8.0, 16.0]))
    dirty = [_with_garbage(bags, task, seed) for seed in (1, 2)]
    for phase in method.phases:
        first, second = (
            float(method.phase_loss(phase.name, Model(network, Random(torch.tensor(7))), each, now).detach())
            for each in dirty
        )
        _demand(
            math.isclose(first, second, rel_tol=1e-5, abs_tol=1e-6),
            f"the loss of phase {phase.name!r} depends on padding ({first:.6g} or {second:.6g}): go through bags.mask",
        )
    one, other = (method.log_proba(Model(network), each)[bags.mask] for each in dirty)
    _demand(torch.allclose(one, other, atol=1e-5), "predictions depend on padding: go through bags.mask")
    return "garbage there changes neither loss nor predictions"


def missing_values(subject: Subject) -> str:
    """Missing, constant and unseen values do no harm."""
    for what, (table, assignment) in awkward_tables().items():
        try:
            subject.learn(subject.task(table, assignment))
        except FaultError as error:
            raise FaultError(f"{what}: {error}") from error
        except Exception as error:
            raise FaultError(f"{what}: {one_line(error)}") from error
    return "; ".join(awkward_tables())


def not_a_number(subject: Subject) -> str:
    """NaN ends as a failure, never as a result."""
    if subject.direct:
        raise InapplicableError("no parameters in training; predictions that are not finite are failures anyway")
    assert subject.learned  # else a fault of another kind would pass for one that NaN brings to light
    tasks = {seed: subject.toy(seed) for seed in (0, 1)}
    stack = subject.population(tasks).stack
    nan = {name: torch.full(shape, math.nan) for name, shape in zip(stack.names, stack.shapes, strict=True)}
    try:
        healthy, bad = subject.population(tasks, start={1: nan}).train()
    except Exception as error:
        return f"stops all that train beside it: {one_line(error)}"
    _demand(bool(bad.failure), "parameters of NaN passed for a result: let NaN through to the loss")
    _demand(not healthy.failure, f"another member's NaN reached a healthy one: {healthy.failure}")
    return bad.failure


def together(subject: Subject) -> str:
    """Members trained together get what each gets alone."""
    if subject.direct:
        raise InapplicableError("each seed is fitted by itself")
    tasks = {seed: subject.toy(seed) for seed in (0, 1, 2)}
    outcomes = _train(subject.population(tasks))
    largest = 0.0
    for seed in (0, 2):
        (alone,) = _train(subject.population({seed: tasks[seed]}))
        for name, choice in alone.selected.items():
            other = outcomes[seed].selected[name]
            difference = float((choice.weights - other.weights).abs().max())
            _demand(
                choice.epoch == other.epoch, f"{name} selects epoch {choice.epoch} alone, {other.epoch} among three"
            )
            _demand(difference < CLOSE, f"weights differ by {difference:.2g} between alone and among three")
            largest = max(largest, difference)
    apart = "" if subject.declared.stackable else "not stackable, so trained one by one; "
    return apart + (f"weights within {largest:.1g}" if largest else "bit-identical weights")


def saved(subject: Subject) -> str:
    """What it learned survives saving and loading."""
    task, learned = subject.toy(), subject.learned
    if subject.direct:
        return _pickled(learned, task)
    file = io.BytesIO()
    torch.save(learned.kept["l1"], file)
    file.seek(0)
    weights = torch.load(file, weights_only=True)
    proba, _ = subject.population({0: task}).predict(0, weights[None], task.test)
    difference = float(np.abs(proba[0] - learned.proba).max())
    _demand(
        difference == 0,
        f"loaded weights predict differently (by {difference:.2g}): only parameters are kept, neither buffers "
        "nor attributes of the method",
    )
    return "loaded weights predict the same"


def learns(subject: Subject) -> str:
    """It learns pure bags; constant proportions do no harm."""
    found = {}
    for classes in range(2, subject.most_classes + 1):
        task = subject.task(*pure_bags(classes))
        auc = holdout_criteria(subject.learn(task, epochs=LEARNING_EPOCHS).proba, task.test)["auc"]
        _demand(auc >= LEARNED, f"AUC {auc:.3f} on {classes} well-separated classes in pure bags, below {LEARNED}")
        found[classes] = auc
    task = subject.task(*constant_proportions())
    auc = holdout_criteria(subject.learn(task).proba, task.test)["auc"]
    chance = not subject.direct or subject.declared.supervision == "instances" or abs(auc - 0.5) < 0.15
    _demand(chance, f"AUC {auc:.3f} where all bags have the same proportions: there is nothing to learn them from")
    return "AUC " + ", ".join(f"{auc:.3f} ({classes} classes)" for classes, auc in found.items())


def cost(subject: Subject) -> str:
    """Its time and memory stay within 50 times DLLP's."""
    seconds, memory = _cost(subject)
    dllp_seconds, dllp_memory = _dllp_cost()
    # a direct method has no steps: its fit is compared with many of them
    steps, what = (STEPS_OF_A_FIT, f"the time of {STEPS_OF_A_FIT} steps of dllp") if subject.direct else (1, "")
    ratios = {what or "dllp's time a step": seconds / (steps * dllp_seconds), "its memory": memory / dllp_memory}
    for name, ratio in ratios.items():
        _demand(ratio <= TOO_DEAR, f"{ratio:.0f}x {name}, more than {TOO_DEAR:.0f}x")
    return ", ".join(f"{ratio:.2g}x {name}" for name, ratio in ratios.items())


CHECKS: tuple[Check, ...] = tuple(
    Check(function.__name__, (function.__doc__ or "").rstrip("."), function)
    for function in (
        declaration,
        trains,
        seeded,
        label_free,
        three_classes,
        padding,
        missing_values,
        not_a_number,
        together,
        saved,
        learns,
        cost,
    )
)


# -- running them ------------------------------------------------------------------------------------------------------


def find(target: str) -> list[str]:
    """Methods by name or pattern, or those of a Python file. Raises if there are none."""
    if not target.endswith(".py"):
        return METHODS.select(target)
    found = _registered_by(target)
    if not found:
        load_plugin(target)
        found = _registered_by(target)
    if not found:
        raise LLPBenchError(f"{target!r} registers no method. Decorate a class with @register_method(...).")
    return found


def run_checks(name: str) -> Iterator[Verdict]:
    """The verdict of every check on a method, one after the other, on one thread."""
    subject, before = Subject(METHODS.entry(name)), torch.get_num_threads()
    torch.set_num_threads(1)  # toy tensors gain nothing from more
    try:
        for check in CHECKS:
            yield check(subject)
    finally:
        torch.set_num_threads(before)


def summary(name: str, verdicts: Iterable[Verdict]) -> str:
    """One line: how many checks passed, which failed."""
    by_result: dict[Result, list[str]] = {result: [] for result in get_args(Result)}
    for verdict in verdicts:
        by_result[verdict.result].append(verdict.check.name)
    passed, failed, without = by_result.values()
    text = f"{name}: {len(passed)} checks passed"
    text += f", {len(without)} without meaning for it" if without else ""
    return text + (f", {len(failed)} failed: {', '.join(failed)}" if failed else "")


def _registered_by(file: str) -> list[str]:
    path = Path(file).resolve()
    modules = {entry.name: importlib.util.find_spec(entry.module) for entry in METHODS.entries()}
    return [name for name, found in modules.items() if found and found.origin and Path(found.origin).resolve() == path]


# -- their tools -------------------------------------------------------------------------------------------------------


def _demand(condition: bool, otherwise: str) -> None:
    if not condition:
        raise FaultError(otherwise)


def _is(thing: Any, base: type) -> bool:
    return isinstance(thing, type) and issubclass(thing, base)


def _hyperparameters(params: Any, base: type) -> tuple[int, list[str]]:
    """How many there are, and which declare no range. Raises `FaultError` where a declaration is wrong."""
    _demand(_is(params, base), f"Params must be a subclass of {base.__name__}")
    whole = is_dataclass(params) and set(vars(params).get("__annotations__", ())) <= {f.name for f in fields(params)}
    _demand(whole and params.__dataclass_params__.frozen, f"{params.__name__} must be a @dataclass(frozen=True)")
    searched, hints = ranges(params), get_type_hints(params)
    for field in fields(params):
        default, search = field.default, searched.get(field.name)
        which = f"hyperparameter {field.name!r}"
        _demand(default is not MISSING, f"{which} has no default")
        if default is None:
            _demand(type(None) in get_args(hints[field.name]), f"{which}: default None, but its type does not allow it")
        elif isinstance(search, Choice):
            choices = ", ".join(map(repr, search.values))
            _demand(default in search.values, f"{which}: default {default!r} is none of its choices {choices}")
        elif isinstance(search, Uniform):
            inside = isinstance(default, int | float) and search.low <= default <= search.high
            _demand(inside, f"{which}: default {default!r} is outside its range {search.low:g} to {search.high:g}")
    return len(fields(params)), [field.name for field in fields(params) if field.name not in searched]


def _train(population: Population) -> list[Outcome]:
    try:
        outcomes = population.train()
    except RuntimeError as error:
        if "randomness" in str(error):
            raise FaultError(f"random numbers must come from model.random: {one_line(error)[-60:]}") from error
        raise
    for outcome in outcomes:
        _demand(not outcome.failure, f"training failed: {outcome.failure}")
    return outcomes


def _weights(outcome: Outcome) -> dict[str, Tensor]:
    return {name: choice.weights for name, choice in outcome.selected.items()}


def _valid(proba: FloatArray, task: Task, sums: bool = False) -> FloatArray:
    """Predictions [rows, classes], if that is what they are; `sums`: to 1."""
    expected = (len(task.test.labels), task.schema.classes)
    _demand(proba.shape == expected, f"predictions must be of shape {expected}, however: {proba.shape}")
    _demand(bool(np.isfinite(proba).all()), "predictions are not finite")
    low, high = float(proba.min()), float(proba.max())
    _demand(low >= -1e-6 and high <= 1 + 1e-6, f"predictions must lie in [0, 1], however: {low:.3g} to {high:.3g}")
    total = proba.sum(axis=1)
    _demand(not sums or np.allclose(total, 1, atol=1e-4), f"probabilities of a row must sum to 1, however: {total[0]}")
    return proba


def _with_garbage(bags: Bags, task: Task, seed: int) -> Bags:
    """The bags with random features where there is padding."""
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


def _pickled(learned: Learned, task: Task) -> str:
    """A predictor after pickling; functions within functions, which pickle refuses, with joblib's cloudpickle."""
    from joblib import wrap_non_picklable_objects

    predictor: Any = learned.source
    try:
        loaded, how = pickle.loads(pickle.dumps(predictor)), "pickle"
    except (pickle.PicklingError, AttributeError, TypeError):
        try:
            loaded, how = pickle.loads(pickle.dumps(wrap_non_picklable_objects(predictor))), "cloudpickle"
        except Exception as error:
            loaded, how = predictor, f"not picklable ({one_line(error)}), so called twice instead"
    same = np.array_equal(loaded(task.test.rows), learned.proba)
    _demand(same, f"the predictor gives something else the second time ({how})")
    return f"predicts the same ({how})"


def _cost(subject: Subject) -> tuple[float, float]:
    """Seconds of a training step on two bags of 256 rows, and most bytes in use at once; of a direct method's fit."""
    task = subject.task(toy_table(1800), toy_assignment(1800, 256))
    if subject.direct:
        return _cost_of_fit(subject, task)
    seconds = []
    for epochs in (1, 4, 4):  # the first only warms up
        population = subject.population({0: task}, epochs)
        _train(population)
        steps = sum(_steps(population, stage) * (stage.epochs or epochs) for stage in population.method.stages)
        seconds.append(population.seconds["train"] / steps)
    with _LiveTensors() as live:
        _train(subject.population({0: task}, 1))
    return min(seconds[1:]), live.most


def _steps(population: Population, stage: Stage) -> int:
    """Of an epoch."""
    units, rows = population.data.index.shape[1], population.data.targets.shape[1]
    return math.ceil(units / 2 if stage.unit == "bags" else rows / population.schema.rows_per_step)


def _cost_of_fit(subject: Subject, task: Task) -> tuple[float, float]:
    import tracemalloc

    def fit() -> float:
        start = time.perf_counter()
        subject.method().fit(task.train, task.schema, generator(0, "training"))
        return time.perf_counter() - start

    seconds = min(fit() for _ in range(2))
    tracemalloc.start()
    try:
        fit()
        return seconds, float(tracemalloc.get_traced_memory()[1])
    finally:
        tracemalloc.stop()


@cache
def _dllp_cost() -> tuple[float, float]:
    return _cost(Subject(METHODS.entry("dllp")))


class _LiveTensors(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts the bytes of all tensors that operations make, while they live."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.most = self._now = 0
        self._known: weakref.WeakSet[Any] = weakref.WeakSet()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(out):
            if isinstance(tensor, Tensor) and (storage := tensor.untyped_storage()) not in self._known:
                self._known.add(storage)
                size = storage.nbytes()
                self._now += size
                self.most = max(self.most, self._now)
                weakref.finalize(storage, self._free, size)
        return out

    def _free(self, size: int) -> None:
        self._now -= size
