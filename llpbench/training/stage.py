"""One stage of training: its optimisers, epochs and steps, and the early stopping of each member.

Within an epoch the host never waits for the device. The batches of the whole epoch are drawn in advance, and losses are
checked for NaN at its end. Members leave the stack when all their criteria have settled.
"""

from __future__ import annotations

import math
import time
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import repeat
from operator import itemgetter

import numpy as np
import torch
from torch import Tensor
from torch.utils._pytree import tree_map

from llpbench.core.bags import BaggedRows, FloatArray
from llpbench.core.cell import Epoch
from llpbench.core.errors import HookError
from llpbench.core.method import Method, Now, Phase, Stage
from llpbench.core.record import CPU_TRAIN
from llpbench.core.text import LOG, one_line
from llpbench.training.cohort import Cohort, Rungs
from llpbench.training.objective import OfMember, Weights, after_step_at, encoding, explained, log_proba
from llpbench.training.selection import Selection
from llpbench.training.stack import AdamW
from llpbench.training.training_data import EpochPlan, State

CLIP = 1.0
"""largest norm of a member's gradient"""
_HORIZON = 3.0
"""epochs after which the share of older weights in a moving average has fallen to 1/e"""


class StageRun:
    """One run of a stage for a population. `run` runs the whole stage, `plan` and `step` parts of it."""

    def __init__(self, cohort: Cohort, stage: Stage, state: State) -> None:
        self.cohort, self.stage, self.state = cohort, stage, state
        self.method, self.device = cohort.method, cohort.machine.device
        outcomes = enumerate(cohort.outcomes)
        active = [number for number, outcome in outcomes if not (outcome.failure or outcome.stopped)]
        self.slots = torch.tensor(active, device=self.device)
        """[n] numbers of the members still in the stack"""
        self.theta = state.weights[self.slots].clone().requires_grad_()
        """[n, parameters] parameters of these members"""
        self.optimisers = self._optimisers()
        """one optimiser for each phase; phases of the same player share one"""
        self.epochs = stage.epochs or cohort.protocol.epochs
        patience, ramp = cohort.protocol.patience, stage.ramp_epochs(self.epochs)
        self.selection = Selection(len(active), patience, self.theta, cohort.regimes, ramp=ramp)
        self.judged = stage.judged and cohort.average is None
        """whether criteria are computed after each epoch"""
        average, is_last = cohort.average, stage == self.method.stages[-1]
        steps = cohort.steps(stage)
        self.average = _AveragedWeights(average.kind, self.epochs, steps, self.theta) if average and is_last else None
        """average of this stage's weights; None except in the last stage of training without validation"""
        self._cold = True
        """whether the next step includes compilation and other one-time work"""
        self._has_after_step = type(self.method).after_step is not Method.after_step
        self._recorded = self._recorder()
        """`_run_phases` for replay by the GPU; None without recording"""

    @explained()
    def run(self, on_epoch: Callable[[Epoch], None] | None = None, rungs: Rungs | None = None) -> None:
        """Train until every member has settled, or for all epochs; update the state and the outcomes.

        `rungs` may stop members of a judged stage early.
        """
        for epoch in range(self.epochs):
            if epoch == 0 or (self.stage.refresh is not None and epoch % self.stage.refresh == 0):
                self.prepare(epoch)
            losses = self.run_epoch(epoch)
            self._count_epoch(epoch, losses)
            if self.average is not None:
                self.average.after_epoch(epoch, self.theta)
            name, values = self._judge(epoch) if self.judged else ("loss", losses)
            if on_epoch is not None:
                value = float(np.nanmean(values)) if np.isfinite(values).any() else math.nan
                on_epoch(Epoch(epoch, self.epochs, name, value, int((~self.selection.done).sum())))
            if self.judged and rungs is not None:
                self._stop_at_rung(rungs, epoch + 1)
            if self.selection.done.all():
                break
            if self.judged:
                self._drop_finished()
        self._recorded = None  # frees its memory for later stages
        if self.judged:
            self._collect(range(len(self.slots)))
        else:
            self.state.weights[self.slots] = self.theta.detach()
        outcomes = [self.cohort.outcomes[number] for number in self.slots.tolist()]
        if self.average is not None and not all(outcome.failure for outcome in outcomes):
            for outcome, weights in zip(outcomes, self.average.weights, strict=True):
                outcome.averaged = weights

    def prepare(self, epoch: int) -> None:
        """Run the method's `prepare` on the whole training set, member by member."""
        if type(self.method).prepare is Method.prepare:
            return
        now = self.cohort.now(self.stage, epoch * self.cohort.steps(self.stage))
        for position, number in enumerate(self.slots.tolist()):
            if self.cohort.outcomes[number].failure:  # NaN would end the training of the others
                continue
            targets = self.cohort.members[number].method.prepare(_MemberView(self, position, number), now)
            with torch.no_grad():
                self.theta[position] = self.cohort.stack.read_back(self.state.buffers, number)
            if targets is not None:
                values, known = self.state.targets
                if np.shape(targets) != (expected := tuple(values.shape[1:])):
                    what = f"must give [rows, classes] targets, here {[*expected]}, got {np.shape(targets)}"
                    raise HookError.of(self.method, "prepare", what)
                values[number] = torch.as_tensor(targets, dtype=torch.float32, device=self.device)
                known[number] = True
        methods = (self.method, *(self.cohort.members[number].method for number in self.slots.tolist()))
        self.cohort.require_equal(methods, repeat(self.cohort.stack.template))  # all train with the first

    def plan(self, epoch: int) -> EpochPlan:
        """Return the random draws of all steps of an epoch, and advance the members' random streams."""
        streams = {number: self.state.rngs[number] for number in self.slots.tolist()}
        unit, per_step, phases = self.stage.unit, self.cohort.per_step(self.stage), len(self.method.phases)
        return self.cohort.data.plan_epoch(unit, per_step, phases, streams, epoch)

    def step(self, plan: EpochPlan, step: int, progress: Tensor) -> Tensor:
        """Run one step of all members, phase by phase; return each member's sum of losses [n].

        `progress` [4]: epoch, total epochs, step and total steps of the stage.
        """
        run_phases = self._recorded or self._run_phases
        total = run_phases(plan.widths[step], plan.drawn[:, step], plan.keys[:, step], progress)
        if self._has_after_step:
            self._after_step(Now(self.stage.name, "", *progress.unbind()))
        if self.average is not None:
            self.average.after_step(self.theta)
        return total

    def _run_phases(self, width: int, drawn: Tensor, keys: Tensor, progress: Tensor) -> Tensor:
        """Run every phase of a step. Parameters and optimisers are updated in place, so that a GPU can replay it."""
        bags = self.cohort.data.take(self.stage.unit, self.slots, drawn, width, self.state.targets)
        total = torch.zeros(len(self.slots), device=self.device)
        for turn, phase in enumerate(self.method.phases):
            names, buffers = (self.stage.name, phase.name), self.state.buffers
            losses = self.cohort.losses(names, self.theta, self.slots, buffers, bags, keys[:, turn], progress)
            if losses.dim() != 1:
                what = f"must be a single number, got shape {tuple(losses.shape[1:])}. End the loss with .mean()."
                raise HookError.of(self.method, "loss", what)
            with self.cohort.machine.fast_products():
                (gradient,) = torch.autograd.grad(losses.sum(), self.theta)
            self.optimisers[turn].step(self.theta, gradient)
            total += losses.detach()
        return total

    def _recorder(self) -> _Recorded | None:
        """Return a new recorder for the members now in the stack; None without recording."""
        return _Recorded(self._run_phases) if self.cohort.machine.recorded else None

    def run_epoch(self, epoch: int) -> FloatArray:
        """Run one epoch of all members; return each member's mean loss [n], not finite if one of its losses was not."""
        clock, cpu = time.perf_counter(), time.process_time()
        plan = self.plan(epoch)
        steps = plan.drawn.shape[1]
        total = torch.zeros(len(self.slots), device=self.device)
        progress = self.cohort.progress(self.stage, [epoch * steps + step for step in range(steps)])
        for step in range(steps):
            total += self.step(plan, step, progress[step])
            if self._cold:
                total.cpu()
                self._cold, clock = False, self._add_time("warm-up", clock)
        mean_losses = np.asarray((total / steps).cpu())  # the only wait in an epoch, except after the first step
        self._add_time("train", clock)
        self.cohort.seconds[CPU_TRAIN] += time.process_time() - cpu
        return mean_losses

    @property
    def weights(self) -> Weights:
        """Return the weights of the members in the stack."""
        return self.cohort.weights(self.theta.detach(), self.slots, self.state.buffers)

    def _optimisers(self) -> list[AdamW]:
        members = [self.cohort.members[number].method for number in self.slots.tolist()]
        decay = torch.tensor([method.params.weight_decay for method in members], device=self.device)
        players: dict[str, AdamW] = {}
        for turn, phase in enumerate(self.method.phases):
            if phase.name not in players:
                rates = [method.learning_rate * self.stage.rate * method.phases[turn].rate for method in members]
                rate, columns = torch.tensor(rates, device=self.device), self._columns(phase)
                compiled = self.cohort.machine.compiled
                players[phase.name] = AdamW(self.theta, rate, decay, CLIP, columns, phase.beta1, compiled)
        return [players[phase.name] for phase in self.method.phases]

    def _columns(self, phase: Phase) -> Tensor | None:
        """Return which parameters a phase's optimiser updates [parameters]; None: all."""
        if "" in phase.modules:
            return None
        names = self.cohort.stack.names
        for prefix in phase.modules:
            if not any(name.startswith(prefix) for name in names):
                parts = ", ".join(sorted({name.partition(".")[0] for name in names}))
                what = f"must have modules of the network, got {prefix!r}. Available: {parts}."
                raise HookError.of(self.method, "phases", what)
        return self.cohort.stack.columns(phase.modules)

    def _judge(self, epoch: int) -> tuple[str, FloatArray]:
        """Compute every criterion after an epoch; return the name of the displayed one, and its values [n]."""
        clock = time.perf_counter()
        criteria = self.cohort.validation.criteria(self.cohort.judging, self.weights, self.slots)
        self._add_time("evaluate", clock)
        self.selection.observe(epoch, criteria, self.theta)
        shown = next(iter(criteria))
        return shown, criteria[shown]

    def _after_step(self, now: Now) -> None:
        """Replace parameters and buffers by the values that the method's `after_step` returns."""
        with torch.no_grad():
            for name, values in self.cohort.map(after_step_at(now), self.weights).items():
                if name not in self.state.buffers:
                    self.theta[:, self.cohort.stack.place(name)] = values.reshape(len(values), -1)
                    continue
                buffer = self.state.buffers[name]
                if values.dtype != buffer.dtype:  # most likely an average of codes or offsets
                    raise ValueError(f"after_step must return {buffer.dtype} for buffer {name!r}, got {values.dtype}")
                buffer[self.slots] = values

    def _count_epoch(self, epoch: int, losses: FloatArray) -> None:
        numbers = self.slots.tolist()
        for position in np.flatnonzero(~self.selection.done).tolist():
            outcome = self.cohort.outcomes[numbers[position]]
            outcome.epochs += 1
            if not np.isfinite(losses[position]):
                outcome.failure = f"the loss was not finite in epoch {epoch} of stage {self.stage.name!r}"
                self.selection.give_up(position)

    def _stop_at_rung(self, rungs: Rungs, epochs: int) -> None:
        """Stop the members that a rung rejects. Members that have settled are compared as well, at no cost."""
        outcomes, name = self.cohort.outcomes, rungs.criterion.name
        positions = {number: position for position, number in enumerate(self.slots.tolist())}
        values = self.selection.value[list(self.selection.criteria).index(name)].tolist()
        best = {number: outcome.selected[name].value for number, outcome in enumerate(outcomes) if outcome.selected}
        best |= dict(zip(positions, values, strict=True))
        best = {n: value for n, value in best.items() if not (outcomes[n].failure or outcomes[n].stopped)}
        done = self.selection.done
        for number in rungs.leaving(epochs, best):
            if number in positions and not done[positions[number]]:
                outcomes[number].stopped = True
                self.selection.give_up(positions[number])

    def _drop_finished(self) -> None:
        """Remove finished members from the stack. If each new size needs compilation, wait until half have finished."""
        done = self.selection.done
        if not done.any() or (self.cohort.machine.compiled and 2 * (~done).sum() > len(done)):
            return
        self._collect(np.flatnonzero(done).tolist())
        stay = np.flatnonzero(~done).tolist()
        self.selection.keep(stay)
        positions = torch.tensor(stay, device=self.device)
        self.slots = self.slots[positions]
        self.theta = self.theta.detach()[positions].requires_grad_()
        for optimiser in {id(optimiser): optimiser for optimiser in self.optimisers}.values():
            optimiser.keep(positions)
        self._cold, self._recorded = True, self._recorder()

    def _collect(self, positions: Sequence[int]) -> None:
        """Store a judged stage's selections in the members' outcomes."""
        numbers = self.slots.tolist()
        for position in positions:
            self.cohort.outcomes[numbers[position]].selected = self.selection.selected(position)

    def _add_time(self, part: str, since: float) -> float:
        """Add the time since `since` to the cohort's `seconds`; return the current time."""
        now = time.perf_counter()
        self.cohort.seconds[part] += now - since
        return now


class _MemberView:
    """One member as `Method.prepare` sees it (`method.Member`)."""

    def __init__(self, run: StageRun, position: int, number: int) -> None:
        self._run, self._number = run, number
        self.network = run.cohort.stack.write_out(run.theta[position].detach(), run.state.buffers, number)
        self.train: BaggedRows = run.cohort.members[number].task.train
        self.rng = run.state.rngs[number]

    def encode(self) -> FloatArray:
        """Return the row vectors [rows, dim]."""
        return self._apply(encoding)

    def proba(self) -> FloatArray:
        """Return the probabilities [rows, classes], with compiled code if validation uses it."""
        cohort, buffers = self._run.cohort, self._run.state.buffers
        if cohort.judging is cohort.prediction:
            return self._apply(lambda *parts: log_proba(*parts).exp())
        here = torch.tensor([self._number])
        weights = cohort.weights(cohort.stack.read_back(buffers, self._number)[None], here, buffers)
        return np.asarray(cohort.judging(log_proba, weights, here, cohort.data.rows, here)[0].exp())

    def _apply(self, function: OfMember) -> FloatArray:
        cohort = self._run.cohort
        here, method = torch.tensor([self._number], device=self._run.device), cohort.members[self._number].method
        chunks = cohort.prediction.chunks(cohort.data.rows, here, here)
        with torch.no_grad():  # without the dimension of members
            found = [function(self.network, method, tree_map(itemgetter(0), bags)) for bags in chunks]
        return np.asarray(torch.cat(found, dim=1)[0].float().cpu())


class _AveragedWeights:
    """Weights whose predictions are averaged: those after each epoch of the second half, or one moving average."""

    def __init__(self, kind: str, epochs: int, steps: int, theta: Tensor) -> None:
        """`steps` is the number of steps in an epoch, `theta` [members, parameters] like the weights."""
        self._first = epochs // 2 if kind == "half" else epochs
        self._share = 1 / (_HORIZON * steps)
        self._moving = torch.zeros_like(theta.detach()) if kind == "ema" else None
        self._weight = 0.0  # of all steps together in the moving average
        self._snapshots: list[Tensor] = []

    def after_step(self, theta: Tensor) -> None:
        """Move the moving average a small part of the way to the current weights."""
        if self._moving is not None:
            self._moving.lerp_(theta.detach(), self._share)
            self._weight += self._share * (1 - self._weight)

    def after_epoch(self, epoch: int, theta: Tensor) -> None:
        """Keep the weights after an epoch of the second half."""
        if epoch >= self._first:
            self._snapshots.append(theta.detach().clone())

    @property
    def weights(self) -> Tensor:
        """Weights whose predictions are averaged [members, n, parameters]."""
        return torch.stack(self._snapshots if self._moving is None else [self._moving / self._weight], dim=1)


_BEFORE = 2
"""calls of each width before recording: the first compiles, the second is checked for waits"""
_WAITS = "synchronizing CUDA operation"
"""part of torch's warning if the host waits for the GPU"""


class _Recorded:
    """A step that a GPU records once for each width of its bags as a CUDA graph, and then replays with one launch.

    A step of SAINT launches about 900 small kernels. Launching them from Python takes longer than running them. The
    kernels and numbers are the same.

    Inputs other than its arguments must keep their addresses, and changes must be made in place. A step is not recorded
    if the host waits for the GPU during it, for example to assign rows on the CPU.
    """

    def __init__(self, step: Callable[[int, Tensor, Tensor, Tensor], Tensor]) -> None:
        self._step = step
        self._calls: Counter[int] = Counter()
        self._graphs: dict[int, tuple[torch.cuda.CUDAGraph, list[Tensor], Tensor]] = {}
        self._possible = True

    def __call__(self, width: int, *tensors: Tensor) -> Tensor:
        """Run or replay the step; `tensors` must have the shapes and types of earlier calls."""
        self._calls[width] += 1
        if not self._possible or self._calls[width] < _BEFORE:
            return self._step(width, *tensors)
        if self._calls[width] == _BEFORE:
            return self._watch(width, tensors)
        if width not in self._graphs:
            self._record(width, tensors)
            if not self._possible:
                return self._step(width, *tensors)
        graph, places, result = self._graphs[width]
        for place, tensor in zip(places, tensors, strict=True):
            place.copy_(tensor)
        graph.replay()
        return result.clone()

    def _watch(self, width: int, tensors: tuple[Tensor, ...]) -> Tensor:
        """Run the step and record whether the host waits for the GPU in it."""
        before = torch.cuda.get_sync_debug_mode()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            torch.cuda.set_sync_debug_mode("warn")
            try:
                result = self._step(width, *tensors)
            finally:
                torch.cuda.set_sync_debug_mode(before)
        for warning in caught:
            if _WAITS in str(warning.message):
                self._possible = False
            else:
                warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
        return result

    def _record(self, width: int, tensors: tuple[Tensor, ...]) -> None:
        places = [tensor.clone() for tensor in tensors]
        graph = torch.cuda.CUDAGraph()
        others = next(iter(self._graphs.values()), None)
        try:
            # graphs of other widths never run at the same time, so they share memory
            with torch.cuda.graph(graph, pool=None if others is None else others[0].pool()):
                result = self._step(width, *places)
        except RuntimeError as error:
            self._possible = False
            self._graphs.clear()
            LOG.warning("a step could not be recorded and is launched kernel by kernel: %s", one_line(error))
            return
        self._graphs[width] = graph, places, result
