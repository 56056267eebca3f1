"""What a method is: one small file in plain PyTorch, written for one model.

A *neural* method (`Method`) gives a loss for one model on a few bags; the engine does the rest: device, optimiser,
epochs, early stopping, many members at once. A *direct* method (`DirectMethod`) gives `fit(train, schema, rng)`, which
returns a predictor, on the same label-free bags.

Hooks of a neural method, from the simplest to the rarest, with a method that has it:

==================  ====================================================================================================
`loss`              a number for one model on the bags of a step; all that `dllp` has
`build`             the modules of one member: projectors, centroids, another head (`tabllp-self`, `selfclr-llp`)
`log_proba`         the prediction that is judged, where it is not the head's (`tabllp-dec`)
`stages`            parts of training with epochs, patience and a unit of their own (`tabllp-pse`)
`phases`            players that take turns within a step; the rest of the network stands still (`llp-gan`)
`prepare`           work on the whole training set: k-means, pseudo-labels, target distributions (`tabllp-pse`)
`after_step`        new values of weights after each step: a teacher that follows the student by a moving average
==================  ====================================================================================================

What a method only *tells* (row vectors, pseudo-pairs, weights that change in the course of training) stands apart, in
the mixin `Reports`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
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
    """Hyperparameters common to all neural methods. Default, range and meaning stand together.

    A method adds its own by subclassing. Continuous ones (`LogUniform`, `Uniform`) may be 0-d tensors inside `loss`,
    because members of one population may differ in them; `Choice` ones are plain values.
    """

    learning_rate: Annotated[float | None, LogUniform(3e-5, 3e-3)] = None
    """of AdamW; None: the encoder's own"""
    weight_decay: Annotated[float, LogUniform(1e-6, 1e-2), AtLeast(0.0)] = 1e-2
    """of AdamW"""
    dropout: Annotated[float, Choice(0.0, 0.1, 0.2, 0.3)] = 0.1
    """inside the encoder's feed-forward layers"""
    hidden: Annotated[int | None, Choice(64, 128, 256, 512)] = None
    """width of the prediction head; None: the encoder's own"""


class Now(NamedTuple):
    """Where training stands. Numbers are tensors, so that a compiled step is compiled once."""

    stage: str
    """name of the stage"""
    phase: str
    """name of the phase: whose turn it is. In `prepare` and `after_step`, which belong to no phase, it is empty"""
    epoch: Tensor
    """0-d float32, zero-based, within the stage"""
    epochs: Tensor
    """0-d float32, most epochs of the stage"""
    step: Tensor
    """0-d float32, zero-based, over all epochs of the stage"""
    steps: Tensor
    """0-d float32, most steps of the stage"""


Unit = Literal["bags", "rows"]


@dataclass(frozen=True)
class Stage:
    """A part of training with its own epochs and patience.

    Each starts from the best weights of the one before, or from its last ones if it was not judged.
    """

    name: str = "train"
    unit: Unit = "bags"
    """what a step draws: whole bags, or as many shuffled rows, each as a bag of one with its own target: its bag's
    proportions, until `prepare` gives others"""
    refresh: int | None = None
    """epochs after which `prepare` is called again; None: only when the stage starts"""
    epochs: int | None = None
    """most epochs; None: the protocol's"""
    judged: bool = True
    """False: a warm-up without validation, which runs for all of its epochs; the last stage must be judged"""
    rate: float = 1.0
    """factor of the learning rate"""

    def __post_init__(self) -> None:
        """Raises `LLPBenchError` for what no stage can be."""
        if self.unit not in get_args(Unit):
            raise LLPBenchError(f"unit of stage {self.name!r} must be bags or rows, got {self.unit!r}")
        for what, number in (("epochs", self.epochs), ("refresh", self.refresh)):
            if number is not None and number < 1:
                raise LLPBenchError(
                    f"{what} of stage {self.name!r} must be at least 1, or None, got {number!r}. A stage without "
                    "epochs is left out of `stages`."
                )


@dataclass(frozen=True)
class Phase:
    """One player's turn within a step: which parameters its loss updates. A player, of one name, may have several."""

    name: str = "train"
    modules: tuple[str, ...] = ("",)
    """prefixes of the names of the parameters that it updates"""
    rate: float = 1.0
    """factor of the learning rate"""
    beta1: float = 0.9
    """decay of AdamW's running mean"""


class Member(Protocol):
    """One member of a population, as `Method.prepare` sees it: the whole training set at once."""

    network: Network
    """may be written to: e.g. k-means centroids into its parameters or buffers"""
    train: BaggedRows
    """all bags, in numpy"""
    rng: np.random.Generator

    def encode(self) -> FloatArray:
        """[rows, dim] row vectors of all training rows"""
        ...

    def proba(self) -> FloatArray:
        """[rows, classes] predictions for all training rows"""
        ...


class Pairs(NamedTuple):
    """Pairs of rows, one from each of two bags, that a method takes to be of the same class."""

    partner: Tensor
    """[size] position in the second bag for each row of the first, -1 for none"""
    positive: Tensor
    """[size] bool: whether the pair is taken to be of one class"""


class Method:
    """Base of neural methods. Subclasses are registered with `@register_method` and state what they are there."""

    Params: ClassVar[type[MethodParams]] = MethodParams
    supervision: ClassVar[Supervision] = "bags"
    takes_encoder: ClassVar[bool] = True
    """False: the method brings its own network; encoders and pretraining do not apply to it"""
    stackable: ClassVar[bool] = True
    """False: its loss cannot be mapped by `torch.func.vmap`; members are then trained one by one, and take longer"""
    compiles: ClassVar[bool] = True
    """False: on a CPU compiling its steps is not repaid, as where the loss takes derivatives itself"""
    stages: tuple[Stage, ...] = (Stage(),)
    """may be set in `__init__`, where they depend on hyperparameters"""
    phases: tuple[Phase, ...] = (Phase(),)
    """likewise"""

    def __init__(self, params: MethodParams | None = None) -> None:
        self.params = params if params is not None else self.Params()

    def build(self, encoder: Encoder, schema: Schema) -> Network:
        """The modules of one member. The default has `encoder` and `head`; `Network.add` adds others."""
        from llpbench.core.model import MLP, Network

        return Network(encoder, MLP(encoder.dim, self.hidden, self.hidden, schema.classes))

    @property
    def learning_rate(self) -> float:
        """Of AdamW."""
        return float(self._own("learning_rate"))

    @property
    def hidden(self) -> int:
        """Width of the prediction head, and of what stands beside it."""
        return int(self._own("hidden"))

    def _own(self, name: str) -> Any:
        """A hyperparameter whose default may be the encoder's own, which a cell's specification fills in."""
        if (value := getattr(self.params, name)) is None:
            raise ValueError(f"{name} has no value: a method without an encoder needs a default of its own for it")
        return value

    def loss(self, model: Model, bags: Bags, now: Now) -> Tensor:
        """A 0-d tensor, for one model on the bags of one step; with several `phases`, of the phase `now.phase`.

        All randomness comes from `model.random`.
        """
        raise NotImplementedError(f"{type(self).__name__} defines no loss")

    def log_proba(self, model: Model, bags: Bags) -> Tensor:
        """[bags, size, classes] log probabilities, the prediction that is judged."""
        return model.log_proba(bags)

    def prepare(self, member: Member, now: Now) -> FloatArray | None:
        """Work on the whole training set at the start of a stage and every `Stage.refresh` epochs.

        May write to `member.network`; may return targets `[rows, classes]` for a stage of `unit="rows"`.
        """
        del member, now
        return None

    def after_step(self, weights: Mapping[str, Tensor], now: Now) -> Mapping[str, Tensor]:
        """New values of some of the network's parameters and buffers, by name, after every step of one member.

        `weights`: all of them that hold fractions, by name within the network. Called without gradients, under `vmap`
        as the loss is, so it may not write in place. A teacher that follows the encoder by a moving average is a module
        that `build` adds (a deep copy, made before pretrained weights are filled in: give it the student's in
        `prepare`), kept from the optimiser by `phases = (Phase(modules=("encoder.", "head.")),)`, since the default
        phase updates every parameter, and this hook returns `{"teacher." + name: decay * weights["teacher." + name] +
        (1 - decay) * weights["encoder." + name], ...}`.
        """
        del weights, now
        return {}


class Reports:
    """Mixin of a method that tells more of itself than its predictions: `class Mine(Method, Reports)`.

    Nothing here has any part in training: the evaluator asks for it at the best epochs, and journals it.
    """

    def represent(self, model: Model, bags: Bags) -> Tensor:
        """[bags, size, dim] the row vectors whose class awareness is measured."""
        return model.encode(bags).z

    def pseudo_pairs(self, model: Model, bags: Bags) -> Pairs:
        """The pairs that the method forms between two bags; asked for only where it is overridden."""
        raise NotImplementedError

    def schedules(self, now: Now) -> dict[str, Tensor]:
        """0-d weights, by name, that change as training goes on."""
        del now
        return {}


class Predictor(Protocol):
    """What a direct method's `fit` returns. It may also tell the effects of features (`core.effects.Explained`)."""

    def __call__(self, rows: Rows) -> FloatArray:
        """[rows, classes] probabilities or, where only the order of rows means something, scores in [0, 1]"""
        ...


@dataclass(frozen=True)
class DirectParams:
    """Hyperparameters of a direct method; subclasses add theirs."""


class DirectMethod:
    """Base of direct methods, which are fitted in seconds on a CPU, without epochs.

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
        """Learn from bags; all randomness comes from `rng`."""
        raise NotImplementedError


def hyperparameters(params: MethodParams | DirectParams) -> dict[str, Any]:
    """Every hyperparameter by name."""
    return {field.name: getattr(params, field.name) for field in fields(params)}
