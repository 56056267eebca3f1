"""Training of many members (seeds; in tuning also hyperparameter settings) as one stacked model.

`vmap` maps a method's loss, written for one model, over the members. Ordinary autograd runs outside, and one AdamW
updates the stacked parameters. Everything stays on the device. Every member has its own split, bags, normalisation and
random streams, so up to rounding it gets the same numbers alone as together with others.

See `cohort.py` for shared state and predictions, `stage.py` for the training loop, `selection.py` for early stopping.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Sequence

import numpy as np
import torch
from torch import Tensor

from llpbench.core.bags import FloatArray, Rows
from llpbench.core.cell import Epoch
from llpbench.core.criteria import CRITERIA, GUIDES, Regime
from llpbench.core.method import Pairs, Reports, Stage
from llpbench.core.seeding import generator
from llpbench.training.cohort import Cohort, Outcome, Rungs
from llpbench.training.objective import OfMember, Weights, explained, log_proba, pseudo_pairs, representation
from llpbench.training.selection import Selected
from llpbench.training.stage import StageRun
from llpbench.training.training_data import State, stacked_rows

_OnEpoch = Callable[[Epoch], None] | None


class Population(Cohort):
    """Members that train together through their method's stages, and then predict."""

    def train(
        self, on_epoch: _OnEpoch = None, *, rungs: Rungs | None = None, regimes: Collection[Regime] | None = None
    ) -> list[Outcome]:
        """Run every stage of the method; return the outcome of each member, in order.

        Stages after a judged one start from its best weights, which depend on the validation regime. They therefore run
        once for each regime, and give the results of that regime's criteria. `regimes` restricts these regimes; None:
        all that are available. `rungs` may stop members early in the first judged stage. Without validation, every
        stage runs once and starts from the last weights of the previous one.
        """
        if regimes is not None:
            self.regimes = tuple(regime for regime in self.regimes if regime in regimes)
        stages = self.method.stages
        validated = (n for n, stage in enumerate(stages) if stage.judged and self.average is None)
        judged = next(validated, len(stages))
        for stage in stages[: judged + 1]:
            self.run(stage, self.state, on_epoch, rungs)
        if later := stages[judged + 1 :]:
            self._run_for_each_regime(later, on_epoch)
        return self.outcomes

    def run(self, stage: Stage, state: State, on_epoch: _OnEpoch = None, rungs: Rungs | None = None) -> None:
        """Run one stage, starting from `state` and updating it."""
        if any(not (outcome.failure or outcome.stopped) for outcome in self.outcomes):
            StageRun(self, stage, state).run(on_epoch, rungs)

    def predict(self, number: int, weights: Tensor, rows: Rows) -> FloatArray:
        """Return a member's probabilities [n, rows, classes] for rows, with parameters `weights` [n, parameters]."""
        return np.asarray(self._of_rows(log_proba, number, weights, rows).double().exp().cpu())

    def represent(self, number: int, weights: Tensor, rows: Rows) -> FloatArray:
        """Return a member's representations [n, rows, dim] of rows."""
        return np.asarray(self._of_rows(representation, number, weights, rows).cpu())

    def _of_rows(self, function: OfMember, number: int, weights: Tensor, rows: Rows) -> Tensor:
        own, slots = self._own(number, weights)
        return self.prediction(function, own, slots, stacked_rows([rows], self.machine.device), torch.zeros_like(slots))

    @property
    def forms_pairs(self) -> bool:
        """Whether the method reports pseudo-pairs."""
        return isinstance(self.method, Reports) and type(self.method).pseudo_pairs is not Reports.pseudo_pairs

    def pseudo_pairs(self, number: int, weights: Tensor, drawn: Tensor, width: int) -> Pairs:
        """Return the pairs [n, width] that a member with `weights` [n, parameters] forms in two bags `drawn` [2]."""
        own, slots = self._own(number, weights)
        two = drawn.to(self.machine.device).expand(len(weights), -1)
        with torch.no_grad(), explained():
            bags = self.data.take("bags", slots, two, width, self.state.targets)
            return Pairs(*self.map(pseudo_pairs, own, bags))

    def schedules(self, number: int, epoch: int) -> dict[str, float]:
        """Return the scheduled loss weights of a member's method at the start of an epoch of the last stage.

        For a weight that rises during the stage, `NAME-share` is its share of the value in the last epoch.
        """
        method, stage = self.members[number].method, self.method.stages[-1]
        if not isinstance(method, Reports):
            return {}
        last = (stage.epochs or self.protocol.epochs) - 1
        moments = (self.now(stage, at * self.steps(stage)) for at in (0, epoch, last))
        first, now, full = ({name: float(v) for name, v in method.schedules(at).items()} for at in moments)
        return now | {f"{name}-share": value / full[name] for name, value in now.items() if full[name] > first[name]}

    def _own(self, number: int, theta: Tensor) -> tuple[Weights, Tensor]:
        """Return one member with several weights [n, parameters], and its number repeated [n]."""
        slots = torch.full((len(theta),), number, device=self.machine.device)
        return self.weights(theta.to(self.machine.device), slots, self.state.buffers), slots

    def _run_for_each_regime(self, stages: Sequence[Stage], on_epoch: _OnEpoch) -> None:
        before, seconds = [(outcome.selected, outcome.failure) for outcome in self.outcomes], dict(self.seconds)
        start, failures = self.state, [outcome.failure for outcome in self.outcomes]
        results: list[dict[str, Selected]] = [{} for _ in self.members]
        regimes = {regime: name for regime, name in GUIDES.items() if regime in self.regimes}
        for regime, handover in regimes.items():
            for outcome, results_before in zip(self.outcomes, before, strict=True):  # discard those of the other regime
                outcome.selected, outcome.failure = results_before
            streams = [generator(member.seed, self.purpose, "later stages", *member.stream) for member in self.members]
            # targets that `prepare` has returned depend on when the judged stage ended, and so on labels
            self.state = start.fork(self.data.targets())
            judged = True
            for stage in stages:
                # Every stage has its own streams. Otherwise they would depend on the length of the previous judged
                # stage, and so on the labels of validation rows.
                self.state.rngs, streams = streams, [stream.spawn(1)[0] for stream in streams]
                if judged:
                    self._hand_over(handover)
                self.run(stage, self.state, on_epoch)
                judged = stage.judged
            for number, outcome in enumerate(self.outcomes):
                failures[number] = failures[number] or outcome.failure
                of_regime = {} if outcome.failure else outcome.selected
                selections = {name: s for name, s in of_regime.items() if CRITERIA[name].regime == regime}
                chosen = {name: dataclasses.replace(choice, training=regime) for name, choice in selections.items()}
                results[number] |= chosen
        for outcome, result, failure in zip(self.outcomes, results, failures, strict=True):
            outcome.failure = "" if result else failure  # of one regime: the results of the other remain
            if not outcome.stopped:
                outcome.selected = result
        for name, first in seconds.items():  # average over regimes, since a run needs only one
            self.seconds[name] = first + (self.seconds[name] - first) / len(regimes)

    def _hand_over(self, criterion: str) -> None:
        """Start the next stage from the weights that a criterion has selected, if it has selected any."""
        for number, outcome in enumerate(self.outcomes):
            if outcome.selected:
                self.state.weights[number] = outcome.selected[criterion].weights
