"""Fit of any method to your own bags, without labels. Networks choose their epoch by held-out bags."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import KW_ONLY, asdict, dataclass, is_dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from sklearn.base import BaseEstimator
from threadpoolctl import threadpool_limits

from llpbench.blocks.distinct import Distinct
from llpbench.blocks.side_by_side import with_workers
from llpbench.core.bags import BaggedRows, Bags, FloatArray, Holdout, IntArray, Ragged, Rows, Schema, Task
from llpbench.core.cell import NUMBERS, Cell, Protocol
from llpbench.core.criteria import GUIDES
from llpbench.core.errors import LLPBenchError, argument
from llpbench.core.global_state import restored
from llpbench.core.method import DirectMethod, Method, Predictor
from llpbench.core.model import Network
from llpbench.core.ranges import read_params
from llpbench.core.registry import ENCODERS, METHODS
from llpbench.core.seeding import generator
from llpbench.core.text import fault
from llpbench.training.cell_runs import limit_threads, probabilities
from llpbench.training.cohort import PREDICT_ROWS, Trainee, encoder_factory
from llpbench.training.device import Machine, pick_device, require_device_name
from llpbench.training.objective import build_copies, log_proba
from llpbench.training.population import Population
from llpbench.training.specification import make_cell, method_of

AUTO = "bag-gp-gbdt"
"""Method of `method="auto"`."""
YARDSTICK = "bag-share"
"""Baseline of every comparison, never recommended. It uses no feature and predicts the mean share for all rows."""
_FEWEST_HELD_OUT = 5
"""Smallest number of held-out bags, if there are twice as many."""
_SMALL = 100_000
"""Largest number of rows of a small table. Only independent computations share it: threads of a single one would wait
for each other if processors are busy."""
MOST_PADDED = 2**24
"""Largest size of a padded group of held-out bags, bags x longest x classes."""
_LARGEST_IN_STEP = 2048
"""Largest number of rows of a bag in a training step of a network."""


@dataclass(frozen=True, eq=False)
class MeanPredictor:
    """Predictor with the mean probabilities of some members."""

    members: list[Predictor]

    def __call__(self, rows: Rows) -> FloatArray:
        return np.asarray(np.mean([member(rows) for member in self.members], axis=0))


def method_on_bags(name: str) -> Any:
    """Return a registered method that learns from bags. Raises `LLPBenchError` for a method that needs labels."""
    declared = METHODS.get(AUTO if name == "auto" else name)
    if declared.supervision != "bags":
        raise LLPBenchError(f"method {name!r} needs labels of rows. Use a method that learns from bags, such as auto.")
    return declared


def is_network(method: str) -> bool:
    """Return whether a method holds out bags to choose an epoch."""
    return not issubclass(method_on_bags(method), DirectMethod)


def _takes_encoder(method: str) -> bool:
    """Return whether a method is a network on an encoder."""
    return bool(getattr(method_on_bags(method), "takes_encoder", False))


@dataclass(eq=False, repr=False)
class FitSettings(BaseEstimator):  # type: ignore[misc]
    """A method and the settings of its fits. Those of networks are checked for direct methods, too."""

    method: str = "auto"
    _: KW_ONLY
    params: Mapping[str, Any] | None = None
    ensemble: int = 1
    random_state: int = 0
    encoder: str = "mlp"
    encoder_params: Mapping[str, Any] | None = None
    epochs: int = 100
    patience: int = 10
    bags_per_step: int = Protocol.bags_per_step
    validation: float = 0.1
    device: str = "auto"
    n_jobs: int | None = None
    numbers: str | None = None

    @property
    def _method(self) -> str:
        return AUTO if self.method == "auto" else self.method

    def _scaling(self) -> str:
        """Return the scaling of numbers. Raises `LLPBenchError` if a method cannot use it."""
        if self.numbers is not None and self.numbers not in NUMBERS:
            raise LLPBenchError(f"numbers must be one of {', '.join(NUMBERS)}, got {self.numbers!r}.")
        if _takes_encoder(self.method):
            return self.numbers or str(ENCODERS.entry(self.encoder).facts.get("numbers", "z"))
        if is_network(self.method) and self.numbers not in (None, "z"):
            raise LLPBenchError(f"numbers of method {self._method!r} must be 'z', got {self.numbers!r}. Use 'z'.")
        return self.numbers or "z"

    def _predictor(self, train: BaggedRows, cardinalities: tuple[int, ...], ensemble: int) -> Predictor:
        """Fit the method to bags, `ensemble` times. Raises `LLPBenchError` for invalid settings, also unused ones."""
        declared = method_on_bags(self.method)
        self._check()
        if is_network(self.method):
            with _own_code(self._method):
                return _fit_networks(self, train, cardinalities, ensemble)
        own = read_params(declared.Params, self.params or {}, owner=self._method)
        schema = _schema(train, cardinalities, 1)
        streams = (generator(self.random_state, "training", *([copy] if copy else [])) for copy in range(ensemble))
        with _own_code(self._method):
            members = [declared(own).fit(train.where_known(), schema, rng) for rng in streams]
        return members[0] if ensemble == 1 else MeanPredictor(members)

    def _probabilities(self, predictor: Predictor, rows: Rows, classes: int) -> FloatArray:
        with _own_code(self._method):
            if isinstance(predictor, NetworkPredictor):
                made: FloatArray = predictor(rows, self.device).astype(np.float64)
                made /= made.sum(axis=1, keepdims=True)  # float32 adds up to 1 to seven digits only
            elif (same := Distinct.of_rows(rows)) is None:
                made = predictor(rows)
            else:
                made = np.asarray(predictor(Rows(*(part[same.first] for part in rows))))[same.place]
        try:
            return probabilities(made, len(rows.numeric), classes)
        except ValueError as error:
            raise LLPBenchError(f"method {self.method!r} gives no probabilities: {error}.") from error

    @contextmanager
    def _threads(self, rows: int) -> Iterator[None]:
        """Limit the threads for a number of rows, as `n_jobs` says.

        For a small table, linear algebra has one thread, so that results do not depend on the number of threads.
        """
        n_jobs: Any = self.n_jobs
        if n_jobs is not None and not (isinstance(n_jobs, int | np.integer) and (n_jobs == -1 or n_jobs >= 1)):
            raise LLPBenchError(f"n_jobs must be None, -1 or a whole number from 1, got {n_jobs!r}")
        small = rows <= _SMALL
        threads = (1 if small else -1) if n_jobs is None else int(n_jobs)
        with ExitStack() as limits:
            if threads > 0:
                limits.enter_context(limit_threads(threads))
            if small:
                limits.enter_context(threadpool_limits(1, "blas"))
                cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
                limits.enter_context(with_workers(cores if threads == -1 else threads))
            yield

    def _check(self) -> None:
        for name in ("ensemble", "random_state", "epochs", "patience", "bags_per_step"):
            require_whole(name, getattr(self, name), int(name != "random_state"))
        sizes: Any = getattr(ENCODERS.get(self.encoder), "Params", None)
        if self.encoder != FitSettings.encoder and not _takes_encoder(self.method):
            no = f"method {self._method!r} has no encoder, got {argument('encoder')} {self.encoder!r}"
            raise LLPBenchError(f"{no}. Leave it out.")
        require_device_name(self.device)
        if isinstance(sizes, type) and is_dataclass(sizes):
            read_params(sizes, self.encoder_params or {}, owner=self.encoder)
        if isinstance(self.validation, bool) or not (isinstance(self.validation, Real) and 0 < self.validation < 1):
            raise LLPBenchError(f"validation must be a share of bags between 0 and 1, got {self.validation!r}.")


@contextmanager
def _own_code(method: str) -> Iterator[None]:
    """Run code of a method. Its errors become one line (`LLPBenchError`), and global state is restored."""
    try:
        with restored(f"method {method}"):
            yield
    except LLPBenchError:
        raise
    except (Exception, SystemExit) as error:
        raise LLPBenchError(f"method {method!r} failed: {fault(error)}.") from error


def require_whole(name: str, value: Any, least: int) -> None:
    """Raise `LLPBenchError` unless an argument is a whole number, `least` or more."""
    if not isinstance(value, int | np.integer) or value < least:
        raise LLPBenchError(f"{argument(name)} must be a whole number from {least}, got {value!r}.")


@dataclass(frozen=True, eq=False)
class NetworkPredictor:
    """Predictor with the mean probabilities of some networks, stored as weights."""

    spec: dict[str, Any]  # the method, its encoder, and the hyperparameters of both
    schema: dict[str, Any]
    weights: list[dict[str, FloatArray]]  # parameters and buffers by name, for each member

    def __call__(self, rows: Rows, where: str = "auto") -> FloatArray:
        """Return predictions [rows, classes], computed on a device."""
        cell, schema, device = Cell.of(self.spec), Schema(**self.schema), pick_device(where)
        method = method_of(cell)
        found = np.zeros((len(rows.numeric), schema.classes))
        for weights in self.weights:
            with torch.random.fork_rng(devices=[]):  # initial weights, replaced below
                network = build_copies(method, encoder_factory(cell, method.params.dropout)(schema), schema)
            network.load_state_dict({name: torch.from_numpy(value) for name, value in weights.items()})
            found += _proba(network.to(device), method, rows, schema, device)
        return found / len(self.weights)


def _proba(network: Network, method: Method, rows: Rows, schema: Schema, device: torch.device) -> FloatArray:
    """Return predictions [rows, classes], in chunks as large as in training if rows attend to each other."""
    together = schema.rows_per_step if method.takes_encoder and network.encoder.row_interaction else PREDICT_ROWS
    prior = torch.tensor(schema.prior, dtype=torch.float32, device=device)
    parts = [np.zeros((0, schema.classes))]
    with torch.no_grad():
        for start in range(0, len(rows.numeric), together):
            part = Rows(*(torch.from_numpy(each[start : start + together])[None].to(device) for each in rows))
            mask = torch.ones(part.numeric.shape[:2], dtype=torch.bool, device=device)
            known = torch.zeros(1, dtype=torch.bool, device=device)
            bags = Bags(part, mask, torch.zeros_like(prior)[None], prior[None], known, prior)
            parts.append(log_proba(network, method, bags)[0].double().exp().cpu().numpy())
    return np.concatenate(parts)


def _fit_networks(
    settings: FitSettings, bags: BaggedRows, cardinalities: tuple[int, ...], ensemble: int
) -> NetworkPredictor:
    """Return networks that were trained together. Each keeps the epoch that predicts held-out bags best (KL)."""
    seed, protocol = settings.random_state, Protocol(settings.epochs, settings.patience, settings.bags_per_step)
    held = _held_out(bags, settings.validation, seed)
    train, validation = _in_parts(bags.some(~held), generator(seed, "parts of bags")), bags.some(held)
    index = validation.padded(np.arange(len(validation.sizes)), int(validation.sizes.max()))
    holdout = Holdout(validation.rows, index, validation.counts, labels=None)
    schema = _schema(train, cardinalities, protocol.bags_per_step)
    task = Task(schema, train, holdout, holdout, None, train, manifest="", fingerprint="")
    given: dict[str, Any] = {"encoder": settings.encoder, "params": settings.params, "numbers": settings._scaling()}
    cell = make_cell(settings._method, "own data", bag_size=1, protocol=protocol, **given)
    if cell.encoder is not None:
        sizes = read_params(ENCODERS.get(cell.encoder).Params, settings.encoder_params or {}, owner=cell.encoder)
        cell = replace(cell, encoder_params=asdict(sizes))
    method = method_of(cell)
    device = pick_device(settings.device)
    machine = Machine(device, recorded=device.type == "cuda")
    members = [Trainee(seed, method, task, copy=copy) for copy in range(ensemble)]
    population = Population(members, encoder_factory(cell, method.params.dropout), protocol, machine)
    weights = []
    for number, outcome in enumerate(population.train()):
        if outcome.failure:
            raise LLPBenchError(f"method {settings._method!r} failed: {outcome.failure}. Try a lower learning_rate.")
        chosen = outcome.selected[GUIDES["coarse"]].weights
        network = population.stack.write_out(chosen, population.state.buffers, number)
        weights.append({key: value.detach().cpu().numpy().copy() for key, value in network.state_dict().items()})
    return NetworkPredictor(cell.spec, asdict(schema), weights)


def _schema(train: BaggedRows, cardinalities: tuple[int, ...], bags_per_step: int) -> Schema:
    rows_per_step = max(round(bags_per_step * len(train.bag_of_row) / len(train.sizes)), 1)
    numbers, classes = train.rows.numeric.shape[1], train.counts.shape[1]
    return Schema(numbers, cardinalities, classes, tuple(train.prior.tolist()), rows_per_step)


def _held_out(bags: BaggedRows, share: float, seed: int) -> Any:
    known = np.flatnonzero(bags.known)
    if len(known) < 4:
        needs = f"a network needs at least 4 bags with known counts, because it holds out bags, got {len(known)}"
        raise LLPBenchError(f"{needs}. Use a direct method, such as bag-gp-gbdt.")
    number = min(max(round(share * len(known)), min(_FEWEST_HELD_OUT, len(known) // 2)), len(known) - 2)
    # held-out bags are padded, so very large bags are not held out beside thousands of small ones
    largest = max(MOST_PADDED // (number * bags.counts.shape[1]), np.sort(bags.sizes[known])[number - 1])
    held = np.zeros(len(bags.sizes), dtype=bool)
    small = known[bags.sizes[known] <= largest]
    held[generator(seed, "held-out bags").choice(small, number, replace=False)] = True
    return held


def _in_parts(bags: BaggedRows, rng: np.random.Generator) -> BaggedRows:
    """Split large bags into random parts with the proportions of the whole (off by about 0.01), to limit memory."""
    parts = -(-bags.sizes // _LARGEST_IN_STEP)
    if (parts == 1).all():
        return bags
    pieces = list[IntArray]()
    for rows, number in zip(bags.index, parts, strict=True):
        pieces += np.array_split(rng.permutation(rows), number) if number > 1 else [rows]
    sizes = np.array([*map(len, pieces)], dtype=np.int64)
    share = np.repeat(bags.counts / bags.sizes[:, None], parts, axis=0)
    return replace(bags, index=Ragged(np.concatenate(pieces), sizes), counts=share * sizes[:, None])


def progress_display(*, shown: bool = True) -> Progress:
    """Return a display of progress with the time left, which is hidden outside terminals and notebooks."""
    console = Console(stderr=True, highlight=False)
    hidden = not (shown and (console.is_jupyter or (console.is_terminal and not os.environ.get("NO_COLOR"))))
    columns = (SpinnerColumn(), TimeElapsedColumn(), TextColumn("{task.description}", markup=False))
    return Progress(*columns, BarColumn(), TimeRemainingColumn(), console=console, transient=True, disable=hidden)
