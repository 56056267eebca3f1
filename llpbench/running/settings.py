"""Settings of a benchmark run: presets, a TOML file and flags become one `Settings` value.

Flags override the file, the file overrides the preset. An option is declared once, as a field of `Settings`: how flags
and file are read, its help text and its default.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from llpbench.core.cell import NUMBERS
from llpbench.core.criteria import Regime
from llpbench.core.errors import LLPBenchError
from llpbench.core.text import hint
from llpbench.core.tuning_spec import SAMPLERS, TUNING_SEED
from llpbench.running import flags as reading
from llpbench.running.executor_names import EXECUTORS
from llpbench.running.flags import Reader

if TYPE_CHECKING:  # `llpbench --help` has no time for numpy
    from llpbench.core.cell import Environment, Protocol

PRESETS: dict[str, dict[str, Any]] = {
    "quick": {
        "methods": "all",
        "datasets": "adult",
        "baggings": "ordered",
        "encoders": "mlp",
        "pretraining": "none",
        "bag-sizes": 256,
        "seeds": 3,
        "epochs": 5,
        "patience": 3,
    },
    "paper": {
        "methods": "all",
        "datasets": "adult,bank_marketing,california,credit,electricity,road_safety",
        "baggings": "ordered",
        "encoders": "saint",
        "pretraining": "none,self+bag",
        "bag-sizes": 256,
        "seeds": 10,
    },
}
DEFAULT_PRESET = "quick"

PRETRAININGS = ("none", "self", "bag", "self+bag")
"""what an encoder may start from: nothing, or weights pretrained on these tasks (`pretraining.py`)"""
PRETRAINED = "pretrained"
"""folder of pretrained encoders inside an output folder"""
SHARDS = "shards"
"""folder of the journals of a plan's parts inside an output folder"""
SEARCHES = "tuning"
"""folder of searches for hyperparameters inside an output folder"""
PREDICTIONS = "predictions"
"""folder of predictions inside an output folder"""
PLOTS = "plots"
"""folder of plots inside an output folder, unless another is named"""


@dataclass(frozen=True)
class Option:
    """An option of a run."""

    read: Reader
    help: str
    form: Literal["value", "switch", "many", "file"] = "value"
    """`switch`: --name/--no-name; `many`: may be repeated, and adds to what the file says; `file`: no flag, only in the
    file."""
    metavar: str = "TEXT"


def _option(
    read: Reader,
    text: str,
    metavar: str = "TEXT",
    *,
    form: Literal["value", "switch", "many", "file"] = "value",
    default: Any = MISSING,
) -> Any:
    """Return a field of `Settings` that is an option; without a default it is in every preset."""
    metadata = {"option": Option(read, text, form, metavar)}
    return (
        field(default_factory=dict, metadata=metadata) if default is dict else field(default=default, metadata=metadata)
    )


@dataclass(frozen=True, kw_only=True)
class Settings:
    """All options of a run. Names are as given; `planning.expand` looks them up."""

    study: str | None = _option(
        reading.names, "Studies to run, or paper: all studies of the paper.", "NAMES", default=None
    )
    methods: str = _option(
        reading.names,
        "Methods, such as dllp,tabllp-*, family:classical, or all (the default set).",
        "NAMES",
    )
    datasets: str = _option(reading.names, "Datasets, such as adult,suite:core,openml:31.", "NAMES")
    baggings: str = _option(reading.names, "How rows become bags: ordered, random, column:by=NAME.", "NAMES")
    encoders: str = _option(reading.names, "Encoders of the neural methods.", "NAMES")
    numbers: tuple[str, ...] | None = _option(
        reading.some_of(*NUMBERS),
        "Scaling of numbers: z, scores (normal scores) or robust (default: the encoder's, usually z).",
        "NAMES",
        default=None,
    )
    """None: as the encoder of a cell declares, else z-scores."""
    pretraining: tuple[str, ...] = _option(
        reading.some_of(*PRETRAININGS), "Pretraining of encoders: none, self, bag, self+bag.", "NAMES"
    )
    bag_sizes: tuple[int, ...] = _option(reading.bag_sizes, "Rows in a bag, at least 2, such as 64,256,1024.", "SIZES")
    max_bags: int | None = _option(reading.count, "Maximum number of training bags (random subset).", "N", default=None)
    seeds: tuple[int, ...] = _option(reading.seeds, "Number of seeds (10 is 0 to 9), or a list: 0,3,7 or 4-6.", "SEEDS")
    epochs: int | None = _option(reading.count, "Maximum number of epochs.", "N", default=None)
    """None: the paper's value in `Protocol`, as for patience and bags a step"""
    patience: int | None = _option(reading.count, "Stop after this many epochs without improvement.", "N", default=None)
    bags_per_step: int | None = _option(reading.count, "Bags in one gradient step of networks.", "N", default=None)
    set: Mapping[str, Mapping[str, Any]] = _option(
        reading.params,
        "Set a hyperparameter: dllp.learning_rate=1e-4,1e-3.",
        "M.P=V",
        form="many",
        default=dict,
    )
    tune: int | None = _option(reading.count, "Search hyperparameters with this many trials.", "N", default=None)
    tune_regimes: tuple[Regime, ...] = _option(
        reading.some_of("fine", "coarse"),
        "Judge trials by validation labels (fine) or proportions (coarse).",
        "NAMES",
        default=("fine", "coarse"),
    )
    tune_sampler: str = _option(reading.one_of(*SAMPLERS), "Sampler of trials: tpe or random.", "NAME", default="tpe")
    tune_seed: int = _option(
        reading.number,
        "Seed of the data split for --tune. Must not be one of --seeds.",
        "N",
        default=TUNING_SEED,
    )
    space: Mapping[str, Mapping[str, Any]] = _option(
        reading.space, "Search ranges by method and hyperparameter.", form="file", default=dict
    )
    out: Path = _option(  # noqa: RUF009
        reading.path, "Folder of the journal and the leaderboards.", "DIR", default=Path("results")
    )
    device: str = _option(reading.device, "Device: auto, cpu, cuda or cuda:N.", "DEVICE", default="auto")
    threads: int = _option(
        reading.count, "CPU threads of each cell (a method on a dataset, with all its seeds).", "N", default=1
    )
    compile: bool | None = _option(
        reading.switch,
        "Compile training steps of networks (default: only if that saves time).",
        form="switch",
        default=None,
    )
    precision: str = _option(
        reading.one_of("float32", "bfloat16"),
        "Precision: float32 or bfloat16.",
        "TYPE",
        default="float32",
    )
    ensemble: int = _option(reading.count, "Networks that are averaged for each seed.", "N", default=1)
    executor: str = _option(
        reading.one_of("auto", *EXECUTORS),
        "How cells run: inline (one at a time), ray (several), debug (in this process) or auto.",
        "NAME",
        default="auto",
    )
    ray_address: str | None = _option(reading.text, "Ray cluster to use: auto or HOST:PORT.", "ADDRESS", default=None)
    retry: tuple[str, ...] = _option(
        reading.some_of("failed", "stale", "done"), "Repeat runs: failed, stale, done, or all.", "WHAT", default=()
    )
    keep_stale: bool = _option(
        reading.switch, "Keep runs whose code has changed; mark them as stale.", form="switch", default=False
    )
    time_budget: float | None = _option(
        reading.duration, "Stop after this time: 540s, 9m or 1.5h.", "TIME", default=None
    )
    """Seconds."""
    cell_timeout: float | None = _option(
        reading.duration, "Stop one cell after this time: 90m or 12h.", "TIME", default=None
    )
    """Seconds for a cell with all its seeds; None: several times the estimate"""
    shard: tuple[int, int] | None = _option(
        reading.shard,
        "Run only part K of N. Join the parts with llpbench merge.",
        "K/N",
        default=None,
    )
    save_predictions: bool = _option(
        reading.switch, "Save predictions in OUT/predictions/RUN.parquet.", form="switch", default=False
    )
    data_dir: str | None = _option(
        reading.folder, "Folder with NAME.parquet of datasets, searched first.", "DIR", default=None
    )
    plugin: tuple[str, ...] = _option(
        reading.files,
        "Python file that defines methods, datasets and the like.",
        "FILE",
        form="many",
        default=(),
    )
    tune_only: bool = False
    """only search, run nothing else (`llpbench tune`)"""
    narrowed: frozenset[str] = frozenset()
    """options that flags or the file set; with a study they select a part of it"""

    @property
    def journal(self) -> Path:
        """Folder of the journal of this run. Each shard has its own, and `llpbench merge` joins them."""
        if self.shard is None:
            return self.out
        part, parts = self.shard
        return self.out / SHARDS / f"{part}-of-{parts}"

    @property
    def again(self) -> frozenset[str]:
        """Kinds of runs that are repeated: `failed`, `stale`, `done`."""
        return frozenset({*self.retry, *(() if self.keep_stale else ("stale",))})

    @property
    def protocol(self) -> Protocol:
        """Limits of the training of neural methods."""
        from llpbench.core.cell import Protocol

        given = {"epochs": self.epochs, "patience": self.patience, "bags_per_step": self.bags_per_step}
        return Protocol(**{name: number for name, number in given.items() if number is not None})

    @property
    def environment(self) -> Environment:
        """Device, threads, precision and compilation of cells."""
        from llpbench.core.cell import Environment

        return Environment(
            device=self.device,
            threads=self.threads,
            compile=self.compile,
            data_dir=self.data_dir,
            pretrained=str((self.out / PRETRAINED).absolute()),
            tuning=str((self.out / SEARCHES).absolute()),
            plugins=self.plugin,
            predictions=str((self.out / PREDICTIONS).absolute()) if self.save_predictions else None,
        )


OPTIONS: dict[str, Option] = {
    item.name.replace("_", "-"): item.metadata["option"] for item in fields(Settings) if "option" in item.metadata
}
"""Options by name, as the flag (`--name`) and the key of the configuration file are written."""


def default(name: str) -> Any:
    """Default of an option that neither flags nor a file set; None if there is none or it is decided later."""
    if name in PRESETS[DEFAULT_PRESET]:
        return PRESETS[DEFAULT_PRESET][name]
    value = {item.name: item.default for item in fields(Settings)}[name.replace("-", "_")]
    return None if value is MISSING or value == () else value


def resolve(flags: Mapping[str, Any], *, preset: str | None = None, config: Path | None = None) -> Settings:
    """One `Settings` from flags (by name, only those given), a configuration file and a preset.

    Raises `LLPBenchError` for an unknown name, a value that cannot be read, and a file that cannot.
    """
    told = _load(config) if config is not None else {}
    usual = "paper" if "study" in {**told, **flags} else DEFAULT_PRESET
    from_file = told.pop("preset", usual)
    values = _read(_preset(from_file if preset is None else preset), "preset {}")
    for layer in (_read(told, f"{{}} in {str(config)!r}"), _read(flags, "--{}")):
        values = _over(values, layer)
    narrowed = frozenset({*told, *flags})
    settings = Settings(narrowed=narrowed, **{name.replace("-", "_"): value for name, value in values.items()})
    if settings.tune is None and (idle := sorted(name for name in narrowed if name.startswith("tune-"))):
        raise LLPBenchError(f"--{idle[0]} needs --tune N. Add it, or leave --{idle[0]} out.")
    if settings.tune and settings.study:
        raise LLPBenchError("--tune and --study do not go together: a study fixes its hyperparameters. Leave one out.")
    if settings.numbers and settings.study:
        raise LLPBenchError("--numbers and --study do not go together: a study fixes the scaling. Leave one out.")
    if settings.max_bags and settings.study:
        raise LLPBenchError("--max-bags and --study do not go together: a study fixes its bags. Leave one out.")
    if settings.tune and settings.ensemble > 1:
        raise LLPBenchError("--tune and --ensemble do not go together: trials are single networks. Leave one out.")
    if settings.tune and settings.tune_seed in settings.seeds:
        raise LLPBenchError(
            f"--tune-seed {settings.tune_seed} is one of --seeds. Choose another: results must be reported on seeds "
            "that no search has seen."
        )
    if settings.ray_address is not None and settings.executor not in ("auto", "ray"):
        raise LLPBenchError(f"--ray-address and --executor {settings.executor} do not go together. Leave one out.")
    if settings.cell_timeout is not None and settings.executor == "debug":
        raise LLPBenchError(
            "--cell-timeout and --executor debug do not go together: debug cannot stop a cell. Leave one out."
        )
    if settings.keep_stale and "stale" in settings.retry:
        raise LLPBenchError(f"--keep-stale and --retry {','.join(settings.retry)} do not go together. Leave one out.")
    return settings


def _preset(name: Any) -> dict[str, Any]:
    if not isinstance(name, str) or name not in PRESETS:
        raise LLPBenchError(f"unknown preset {name!r}. There are: {', '.join(PRESETS)}.")
    return PRESETS[name]


_LONGEST = 1_000_000
"""bytes of a configuration file"""


def _load(config: Path) -> dict[str, Any]:
    try:
        with config.open("rb") as file:
            content = file.read(_LONGEST + 1)
        if len(content) > _LONGEST:
            raise LLPBenchError(f"--config {str(config)!r} is longer than {_LONGEST:,} bytes. Give a TOML file.")
        return tomllib.loads(content.decode("utf-8"))
    except OSError as error:
        raise LLPBenchError(f"--config {str(config)!r} cannot be read: {error.strerror}. Fix the path.") from error
    except RecursionError as error:
        raise LLPBenchError(f"--config {str(config)!r} is nested too deeply. Fix the file.") from error
    except ValueError as error:  # of TOML and of UTF-8
        raise LLPBenchError(f"--config {str(config)!r} is not TOML: {error}. Fix the file.") from error


def _read(layer: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Every value of a layer in its final type. `where` says what to call a name in an error."""
    values = {}
    for name, value in layer.items():
        if name not in OPTIONS:
            known = [*OPTIONS, "preset"]
            raise LLPBenchError(f"unknown name {where.format(name)}. {hint(name, known)}There are: {', '.join(known)}.")
        values[name] = OPTIONS[name].read(value, where.format(name))
    return values


def _over(low: dict[str, Any], high: dict[str, Any]) -> dict[str, Any]:
    """`high` over `low`; options that may be repeated add up."""
    merged = {**low, **high}
    if "plugin" in low and "plugin" in high:
        merged["plugin"] = tuple(dict.fromkeys((*low["plugin"], *high["plugin"])))
    if "set" in low and "set" in high:
        methods = dict.fromkeys((*low["set"], *high["set"]))
        merged["set"] = {name: {**low["set"].get(name, {}), **high["set"].get(name, {})} for name in methods}
    return merged
