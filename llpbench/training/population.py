"""Training: many members (seeds, in tuning also hyperparameter settings) as one stacked model.

`vmap` maps a method's loss, written for one model, over the members; ordinary autograd runs outside; one AdamW updates
the stacked parameters. Everything stays on the device. Every member has its own split, bags, normalisation and random
streams, so that it gets the same numbers alone as among ten (up to rounding).

What members share is `cohort.py`, the loop of a stage `stage.py`, early stopping `selection.py`, what members make of
rows `prediction.py`.
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
from llpbench.training.cohort import Cohort
from llpbench.training.members import Outcome, Rungs
from llpbench.training.objective import OfMember, Weights, explained, log_proba, pseudo_pairs, representation
from llpbench.training.selection import Selected
from llpbench.training.stage import StageRun
from llpbench.training.state import State
from llpbench.training.training_data import stacked_rows

OnEpoch = Callable[[Epoch], None] | None


class Population(Cohort):
    """Members trained together by the stages of their method, and what they make of rows."""

    def train(
        self, on_epoch: OnEpoch = None, *, rungs: Rungs | None = None, regimes: Collection[Regime] | None = None
    ) -> list[Outcome]:
        """Run every stage of the method; what became of each member, in order.

        What comes after a judged stage starts from its best weights, which depend on the validation regime: it is run
        once for each, and gives the results of that regime's criteria. `regimes`: those that are wanted, if not all
        that can be had. At `rungs`, which are of the first judged stage, members may have to leave.
        """
        if regimes is not None:
            self.regimes = tuple(regime for regime in self.regimes if regime in regimes)
        stages = self.method.stages
        judged = next((n for n, stage in enumerate(stages) if stage.judged), len(stages))
        for stage in stages[: judged + 1]:
            self.run(stage, self.state, on_epoch, rungs)
        if later := stages[judged + 1 :]:
            self._run_for_each_regime(later, on_epoch)
        return self.outcomes

    def run(self, stage: Stage, state: State, on_epoch: OnEpoch = None, rungs: Rungs | None = None) -> None:
        """Run one stage, from a state and into it."""
        if any(not (outcome.failure or outcome.stopped) for outcome in self.outcomes):
            StageRun(self, stage, state).run(on_epoch, rungs)

    def predict(self, number: int, weights: Tensor, rows: Rows) -> FloatArray:
        """What a member with parameters `weights` [n, parameters] makes of rows: probabilities [n, rows, classes]."""
        return np.asarray(self._of_rows(log_proba, number, weights, rows).double().exp().cpu())

    def represent(self, number: int, weights: Tensor, rows: Rows) -> FloatArray:
        """Its representations [n, rows, dim] of them."""
        return np.asarray(self._of_rows(representation, number, weights, rows).cpu())

    def _of_rows(self, function: OfMember, number: int, weights: Tensor, rows: Rows) -> Tensor:
        own, slots = self._own(number, weights)
        return self.prediction(function, own, slots, stacked_rows([rows], self.machine.device), torch.zeros_like(slots))

    @property
    def forms_pairs(self) -> bool:
        """Whether the method tells of pseudo-pairs."""
        return isinstance(self.method, Reports) and type(self.method).pseudo_pairs is not Reports.pseudo_pairs

    def pseudo_pairs(self, number: int, weights: Tensor, drawn: Tensor, width: int) -> Pairs:
        """The pairs that a member with `weights` [n, parameters] forms in two bags `drawn` [2]: each [n, width]."""
        own, slots = self._own(number, weights)
        two = drawn.to(self.machine.device).expand(len(weights), -1)
        with torch.no_grad(), explained():
            bags = self.data.take("bags", slots, two, width, self.state.targets)
            return Pairs(*self.map(pseudo_pairs, own, bags))

    def schedules(self, number: int, epoch: int) -> dict[str, float]:
        """The weights that a member's method changes, at the start of an epoch of the last stage."""
        method, stage = self.members[number].method, self.method.stages[-1]
        if not isinstance(method, Reports):
            return {}
        now = self.now(stage, epoch * self.steps(stage))
        return {name: float(value) for name, value in method.schedules(now).items()}

    def _own(self, number: int, theta: Tensor) -> tuple[Weights, Tensor]:
        """One member with several weights [n, parameters], and its number [n]."""
        slots = torch.full((len(theta),), number, device=self.machine.device)
        return self.weights(theta.to(self.machine.device), slots, self.state.buffers), slots

    def _run_for_each_regime(self, stages: Sequence[Stage], on_epoch: OnEpoch) -> None:
        before, seconds = [outcome.selected for outcome in self.outcomes], dict(self.seconds)
        start = self.state
        results: list[dict[str, Selected]] = [{} for _ in self.members]
        regimes = {regime: name for regime, name in GUIDES.items() if regime in self.regimes}
        for regime, handover in regimes.items():
            for outcome, selected in zip(self.outcomes, before, strict=True):  # nothing of the other regime is left
                outcome.selected = selected
            streams = [generator(member.seed, self.purpose, "later stages", *member.stream) for member in self.members]
            self.state = start.fork()
            judged = True
            for stage in stages:
                # every stage has streams of its own: else they would depend on how long the judged one before it took,
                # which labels of validation rows decide
                self.state.rngs, streams = streams, [stream.spawn(1)[0] for stream in streams]
                if judged:
                    self._hand_over(handover)
                self.run(stage, self.state, on_epoch)
                judged = stage.judged
            for result, outcome in zip(results, self.outcomes, strict=True):
                own = {name: s for name, s in outcome.selected.items() if CRITERIA[name].regime == regime}
                result |= {name: dataclasses.replace(choice, training=regime) for name, choice in own.items()}
        for outcome, result in zip(self.outcomes, results, strict=True):
            if not outcome.stopped:
                outcome.selected = result
        for name, first in seconds.items():  # of one regime: nobody needs both
            self.seconds[name] = first + (self.seconds[name] - first) / len(regimes)

    def _hand_over(self, criterion: str) -> None:
        """Let the next stage start from the weights that a criterion has selected, where it has."""
        for number, outcome in enumerate(self.outcomes):
            if outcome.selected:
                self.state.weights[number] = outcome.selected[criterion].weights
