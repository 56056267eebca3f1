"""Numbers of every method and of its options: losses, gradients and predictions of networks, predictions of others.

`numbers.json` has the values as somebody last vouched for them, on toy data and without training. If results are meant
to change, raise the version of the method and run

    python tests/methods/test_method_numbers.py
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a program, too
from small import mlp, together, toy_task

from llpbench.core.bags import Rows, Task
from llpbench.core.method import DirectMethod, Stage
from llpbench.core.model import NoEncoder
from llpbench.core.ranges import Choice, conditions, ranges
from llpbench.core.registry import METHODS
from llpbench.core.seeding import generator
from llpbench.training.population import Population
from llpbench.training.stage import StageRun

FILE = Path(__file__).with_name("numbers.json")
FEWER: dict[str, dict[str, Any]] = {
    "bag-gp-gbdt": {"trees": 200, "rounds": 2},
    "count-gbdt": {"trees": 100},
    "em-gbdt": {"trees": 50, "rounds": 2},
    "bag-forest": {"trees": 50},
}
"""options of slow methods in all their cases"""
COMMON = {"learning_rate", "weight_decay", "dropout", "hidden", "draws", "trees", "rounds", "leaves", "most_pairs"}
LATER = {"refresh", "second_rate", "decay", "adversarial", "generator_learning_rate"}
"""hyperparameters without a case: of every network, sizes of slow models, and those that act after the first step"""
ALIKE = {"alternating-mean-map/start=means", "tabllp-pse/space=proba"}
"""cases that end in the same labels as the default"""


def options(declared: Any) -> Iterator[dict[str, Any]]:
    """Yield {}, every other value of each choice, and the end of each range, with what makes it count."""
    yield {}
    defaults, needed = declared.Params(), conditions(declared.Params)
    for name, search in ranges(declared.Params).items():
        if name not in COMMON | LATER:
            when = {needed[name].name: needed[name].values[0]} if name in needed else {}
            when = {option: value for option, value in when.items() if value != getattr(defaults, option)}
            values = search.values if isinstance(search, Choice) else (search.high,)
            yield from ({**when, name: value} for value in values if value != getattr(defaults, name))


def _plain(value: Any) -> str:
    """Write a value of an option: 1 and 1.0 are equal, so `Annotated` may keep either of two ranges."""
    return f"{value:g}" if isinstance(value, float) else str(value)


CASES = {
    "/".join([entry.name, *(f"{name}={_plain(value)}" for name, value in given.items())]): (entry.name, given)
    for entry in METHODS.entries()
    for given in options(entry.load())
}


def some_task(supervision: str) -> Task:
    """Three classes in unequal bags with noisy counts, one of them suppressed; exact ones of rows with labels."""
    task = toy_task(0, classes=3, supervision=supervision, unequal=True, rows=240)
    if supervision != "bags":
        return task
    counts = task.train.counts + np.random.default_rng(1).normal(size=task.train.counts.shape)
    counts[3] = np.nan
    return replace(task, train=replace(task.train, counts=counts, noise=1.0))


def of_direct(method: DirectMethod) -> list[float]:
    """Mean probabilities of two and of three classes, their deviations, and the effects of features."""
    found: list[float] = []
    for task in (toy_task(0, supervision=method.supervision, rows=240), some_task(method.supervision)):
        predictor = method.fit(task.train.where_known(), task.schema, generator(0, "training"))
        proba = predictor(task.test.rows)
        found += [*proba.mean(axis=0), *proba.std(axis=0), *proba[:3, 0]]
        if hasattr(predictor, "effects"):
            found += [float(np.abs(effect.values).mean()) + float(effect.std.mean()) for effect in predictor.effects()]
    return found


def of_stage(population: Population, stage: Stage) -> tuple[list[float], Tensor]:
    """Return loss and norm of the gradient in the first step of each phase, as the engine has them, and weights."""
    run = StageRun(population, stage, population.state)
    run.prepare(0)
    plan = run.plan(0)
    state, slots = population.state, run.slots
    bags = population.data.take(stage.unit, slots, plan.drawn[:, 0], plan.widths[0], state.targets)
    progress, found = torch.tensor([9.0, 10.0, 30.0, 100.0]), []
    for turn, phase in enumerate(population.method.phases):
        names = (stage.name, phase.name)
        losses = population.losses(names, run.theta, slots, state.buffers, bags, plan.keys[:, 0, turn], progress)
        (gradient,) = torch.autograd.grad(losses.sum(), run.theta)
        found += [float(losses.detach()), float(gradient.norm())]
    return found, run.theta.detach()


def of_network(method: Any) -> list[float]:
    """Numbers of all stages, then of predictions, from the same untrained network."""
    task = some_task(method.supervision)
    build = mlp if method.takes_encoder else lambda _: NoEncoder()
    population = together(method, {0: task}, encoder=build, epochs=10)
    stages = [of_stage(population, stage) for stage in method.stages]
    rows = Rows(*(part[:40] for part in task.test.rows))
    proba = population.predict(0, stages[-1][1], rows)[0]  # as after the last `prepare`
    return [*(value for found, _ in stages for value in found), *proba.mean(axis=0), *proba.std(axis=0)]


def numbers(name: str, given: dict[str, Any]) -> list[float]:
    declared = METHODS.get(name)
    few = {**FEWER.get(name, {}), **given} | ({"draws": 20} if name == "bag-gp" else {})
    if issubclass(declared, DirectMethod):
        return of_direct(declared(declared.Params(**few)))
    small = {"hidden": 16, "learning_rate": 0.01} if declared.takes_encoder else {}
    return of_network(declared(declared.Params(**{**small, **few})))


@pytest.mark.parametrize("case", CASES)
def test_numbers_of_methods_are_unchanged(case: str) -> None:
    known = json.loads(FILE.read_text(encoding="utf-8"))[case]
    tolerance = 0.02 if "gbdt" in case or "forest" in case else 1e-3  # rounding may choose other splits
    assert numbers(*CASES[case]) == pytest.approx(known, rel=tolerance, abs=tolerance / 10)


def test_every_option_changes_some_number() -> None:
    known = json.loads(FILE.read_text(encoding="utf-8"))
    assert known.keys() == CASES.keys()
    same = {case for case in known if "/" in case and known[case] == known[case.rpartition("/")[0]]}
    assert same == ALIKE


if __name__ == "__main__":
    lines = [f"{json.dumps(case)}: {json.dumps([float(f'{x:.6g}') for x in numbers(*CASES[case])])}" for case in CASES]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
