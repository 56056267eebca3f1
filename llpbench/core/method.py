"""The contract of a method: one small file in plain PyTorch, written for one model.

A *neural* method (`Method`) defines a loss for one model on a few bags. The engine does the rest: device, optimiser,
epochs, early stopping, many members at once. A *direct* method (`DirectMethod`) defines `fit(train, schema, rng)`. It
returns a predictor. Both get the same bags without labels.

Hooks of a neural method, from the simplest to the rarest, with an example:

==================  ====================================================================================================
`loss`              a number for one model on the bags of a step; the only hook of `dllp`
`build`             the modules of one member: projectors, centroids, another head (`tabllp-self`, `selfclr-llp`)
`log_proba`         the evaluated prediction, if it is not the head's (`tabllp-dec`)
`stages`            parts of training with their own epochs, patience and unit (`tabllp-pse`)
`phases`            players that take turns within a step, while the rest of the network is frozen (`llp-gan`)
`prepare`           work on the whole training set: k-means, pseudo-labels, target distributions (`tabllp-pse`)
`after_step`        new values of weights after each step: a teacher that follows the student by a moving average
==================  ====================================================================================================

The mixin `Reports` has the hooks for facts that a method only *reports*: row vectors, pseudo-pairs, weights that change
during training.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple, Protocol, get_args

import numpy as np

from llpbench.core.bags import BaggedRows, Bags, FloatArray, Rows, Schema, Supervision
from llpbench.core.errors import LLPBenchError
from llpbench.core.ranges import AtLeast, Choice, LogUniform

if TYPE_CHECKING:
    from torch import Tensor

    from llpbench.core.model import Encoder, Model, Network


@dataclass(frozen=True)
class MethodParams:
    """Hyperparameters common to all neural methods, each with its default, range and meaning.

    A method adds its own in a subclass. Continuous hyperparameters (`LogUniform`, `Uniform`) may be 0-d tensors inside
    `loss`, because networks trained together (a population) may differ in them. Those with a `Choice` are plain values.
    """

    learning_rate: Annotated[float | None, LogUniform(3e-5, 3e-3)] = None
    """learning rate of AdamW; None: the encoder's default"""
    weight_decay: Annotated[float, LogUniform(1e-6, 1e-2), AtLeast(0.0)] = 1e-2
    """weight decay of AdamW"""
    dropout: Annotated[float, Choice(0.0, 0.1, 0.2, 0.3)] = 0.1
    """dropout rate in the encoder's feed-forward layers"""
    hidden: Annotated[int | None, Choice(64, 128, 256, 512)] = None
    """width of the prediction head; None: the encoder's default"""


class Now(NamedTuple):
    """The current point of training. Numbers are tensors, so that a compiled step is compiled only once."""

    stage: str
    """name of the stage"""
    phase: str
    """name of the phase; empty in `prepare` and `after_step`, which belong to no phase"""
    epoch: Tensor
    """0-d float32, zero-based number of the epoch within the stage"""
    epochs: Tensor
    """0-d float32, largest number of epochs of the stage"""
    step: Tensor
    """0-d float32, zero-based number of the step over all epochs of the stage"""
    steps: Tensor
    """0-d float32, largest number of steps of the stage"""


Unit = Literal["bags", "rows"]


@dataclass(frozen=True)
class Stage:
    """A part of training with its own epochs and patience.

    A stage starts from the best weights of the previous one, or from its last weights if it was not judged.
    """

    name: str = "train"
    unit: Unit = "bags"
    """unit of a step: whole bags, or the same number of rows, shuffled

    Each shuffled row is a bag of one row with its own target: its bag's proportions, until `prepare` returns others.
    """
    refresh: int | None = None
    """epochs after which `prepare` is called again; None: only at the start of the stage"""
    epochs: int | None = None
    """largest number of epochs; None: the number in the protocol"""
    judged: bool = True
    """False: a warm-up without validation, which always runs all epochs; the last stage must be judged"""
    rate: float = 1.0
    """factor on the learning rate"""
    ramp: float | int = 0
    """first epochs, in which a weight of the loss is ramped up: a share of all epochs (float) or a number (int)

    Patience counts only the epochs after the ramp.
    """

    def __post_init__(self) -> None:
        """Raise `LLPBenchError` unless all fields are valid."""
        if self.unit not in get_args(Unit):
            raise LLPBenchError(f"unit of stage {self.name!r} must be bags or rows, got {self.unit!r}")
        for what, number in (("epochs", self.epochs), ("refresh", self.refresh)):
            if number is not None and number < 1:
                raise LLPBenchError(
                    f"{what} of stage {self.name!r} must be at least 1, or None, got {number!r}. A stage without "
                    "epochs is left out of `stages`."
                )
        if not 0 <= self.ramp <= (1.0 if isinstance(self.ramp, float) else math.inf):
            raise LLPBenchError(
                f"ramp of stage {self.name!r} must be a share of its epochs from 0.0 to 1.0, or a number of epochs, "
                f"got {self.ramp!r}"
            )

    def ramp_epochs(self, epochs: int) -> int:
        """Return the number of epochs in the ramp of a stage of `epochs` epochs."""
        return min(self.ramp, epochs) if isinstance(self.ramp, int) else math.ceil(round(self.ramp * epochs, 9))


@dataclass(frozen=True)
class Phase:
    """A player's turn within a step, and the parameters that it updates. All turns of a player have the same name."""

    name: str = "train"
    modules: tuple[str, ...] = ("",)
    """name prefixes of the parameters to update"""
    rate: float = 1.0
    """factor on the learning rate"""
    beta1: float = 0.9
    """decay of AdamW's running mean"""


class Member(Protocol):
    """One member of a population as `Method.prepare` sees it, with the whole training set."""

    network: Network
    """network, which may be modified, for example to write k-means centroids into its parameters or buffers"""
    train: BaggedRows
    """all bags, as numpy arrays"""
    rng: np.random.Generator

    def encode(self) -> FloatArray:
        """Return row vectors of all training rows [rows, dim]."""
        ...

    def proba(self) -> FloatArray:
        """Return predictions for all training rows [rows, classes]."""
        ...


class Pairs(NamedTuple):
    """Pairs of rows, one from each of two bags, and a guess whether the rows have the same class."""

    partner: Tensor
    """[size] position in the second bag for each row of the first, -1 for none"""
    positive: Tensor
    """[size] bool: whether the method assumes that the rows of a pair have the same class"""


class Method:
    """Base of neural methods. Register a subclass with `@register_method`, which also takes facts about it."""

    Params: ClassVar[type[MethodParams]] = MethodParams
    supervision: ClassVar[Supervision] = "bags"
    takes_encoder: ClassVar[bool] = True
    """False: the method has its own network, and does not use encoders or pretraining"""
    stackable: ClassVar[bool] = True
    """False: `torch.func.vmap` cannot map its loss; members are trained one by one, which takes longer"""
    compiles: ClassVar[bool] = True
    """False: compiling its steps is not worthwhile on a CPU, for example if the loss takes derivatives itself"""
    stages: tuple[Stage, ...] = (Stage(),)
    """parts of training; set them in `__init__` if they depend on hyperparameters"""
    phases: tuple[Phase, ...] = (Phase(),)
    """turns within a step; set them in `__init__` if they depend on hyperparameters"""

    def __init__(self, params: MethodParams | None = None) -> None:
        self.params = params if params is not None else self.Params()

    def build(self, encoder: Encoder, schema: Schema) -> Network:
        """Return the modules of one member. The default has `encoder` and `head`; `Network.add` adds others."""
        from llpbench.core.model import MLP, Network

        return Network(encoder, MLP(encoder.dim, self.hidden, self.hidden, schema.classes))

    @property
    def learning_rate(self) -> float:
        """Learning rate of AdamW."""
        return float(self._own("learning_rate"))

    @property
    def hidden(self) -> int:
        """Width of the prediction head and of similar modules."""
        return int(self._own("hidden"))

    def _own(self, name: str) -> Any:
        """Return a hyperparameter. None means the encoder's default; `params` from a cell already have it filled in."""
        if (value := getattr(self.params, name)) is None:
            raise ValueError(f"{name} has no value: a method without an encoder must declare its default")
        return value

    def loss(self, model: Model, bags: Bags, now: Now) -> Tensor:
        """Return the loss of one model on the bags of one step, a 0-d tensor. It may depend on `now.phase`.

        All randomness comes from `model.random`.
        """
        raise NotImplementedError(f"{type(self).__name__} defines no loss")

    def log_proba(self, model: Model, bags: Bags) -> Tensor:
        """Return the evaluated prediction as log probabilities [bags, size, classes]."""
        return model.log_proba(bags)

    def prepare(self, member: Member, now: Now) -> FloatArray | None:
        """Process the whole training set, at the start of a stage and every `Stage.refresh` epochs.

        May modify `member.network`. May return targets `[rows, classes]` for a stage with `unit="rows"`.
        """
        del member, now
        return None

    def after_step(self, weights: Mapping[str, Tensor], now: Now) -> Mapping[str, Tensor]:
        """Return new values of some parameters and buffers of one member by name, after each of its steps.

        `weights` contains all floating-point parameters and buffers, by name within the network. The hook is called
        without gradients and, like the loss, under `vmap`, so it must not write in place.

        Example: a teacher that is a moving average of the encoder. `build` adds a deep copy of the encoder, before
        pretrained weights are loaded. `prepare` copies the student's weights into it. The phases
        `(Phase(modules=("encoder.", "head.")),)` exclude it from the optimiser. This hook returns
        `{"teacher." + name: decay * weights["teacher." + name] + (1 - decay) * weights["encoder." + name], ...}`.
        """
        del weights, now
        return {}


class Reports:
    """Mixin for methods that report more than predictions: `class Mine(Method, Reports)`.

    These hooks do not affect training. The evaluator calls them at the best epochs, and stores their results.
    """

    def represent(self, model: Model, bags: Bags) -> Tensor:
        """Return the row vectors whose class awareness is measured [bags, size, dim]."""
        return model.encode(bags).z

    def pseudo_pairs(self, model: Model, bags: Bags) -> Pairs:
        """Return the pairs that the method forms between two bags. The hook is called only if it is overridden."""
        raise NotImplementedError

    def schedules(self, now: Now) -> dict[str, Tensor]:
        """Return the weights that change during training, by name, as 0-d tensors."""
        del now
        return {}


class Predictor(Protocol):
    """Return type of a direct method's `fit`. It may have `effects(label)`, the `FeatureEffect` of each feature."""

    def __call__(self, rows: Rows) -> FloatArray:
        """Return probabilities [rows, classes], or scores in [0, 1] if only their order is meaningful."""
        ...


@dataclass(frozen=True)
class DirectParams:
    """Base of the hyperparameters of direct methods."""


class DirectMethod:
    """Base of direct methods, which are fitted to bags without labels, usually in seconds on a CPU.

    Examples
    --------
    >>> import numpy as np
    >>> from llpbench import DirectMethod
    >>> class Prior(DirectMethod):
    ...     def fit(self, train, schema, rng):
    ...         return lambda rows: np.tile(train.prior, (len(rows.numeric), 1))
    """

    Params: ClassVar[type[DirectParams]] = DirectParams
    supervision: ClassVar[Supervision] = "bags"

    def __init__(self, params: DirectParams | None = None) -> None:
        self.params = params if params is not None else self.Params()

    def fit(self, train: BaggedRows, schema: Schema, rng: np.random.Generator) -> Predictor:
        """Fit to bags with known counts and return a predictor. All randomness comes from `rng`."""
        raise NotImplementedError
