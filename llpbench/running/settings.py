"""Settings of a benchmark run, made from presets, a TOML file and flags.

Flags override the file, and the file overrides the preset. Each option is declared once, as a field of `Settings` with
its reader, help text and default.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from llpbench.core.cell import NUMBERS
from llpbench.core.criteria import Regime
from llpbench.core.errors import LLPBenchError
from llpbench.core.text import hint
from llpbench.core.tuning_spec import SAMPLERS, TUNING_SEED
from llpbench.running import flags as reading
from llpbench.running.flags import Reader

if TYPE_CHECKING:  # `llpbench --help` has no time for numpy
    from llpbench.core.cell import Environment, Protocol

PRESETS: dict[str, dict[str, Any]] = {
    "quick": {
        "methods": "default",
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
        "methods": "default",
        "datasets": "adult,bank_marketing,california,credit,electricity,road_safety",
        "baggings": "ordered",
        "encoders": "saint",
        "pretraining": "none,self+bag",
        "bag-sizes": 256,
        "seeds": 10,
    },
}
DEFAULT_PRESET = "quick"
_EXECUTORS = sorted(path.stem for path in Path(__file__).with_name("executors").glob("[!_]*.py"))

PRETRAININGS = ("none", "self", "bag", "self+bag")
"""Pretraining tasks of encoders (`pretraining.py`)."""
PRETRAINED, SEARCHES, PREDICTIONS, PLOTS = "pretrained", "tuning", "predictions", "plots"
"""Folders inside an output folder: pretrained weights, searches, predictions and plots."""


class Option(NamedTuple):
    """An option of a run."""

    read: Reader
    help: str


def _option(read: Reader, text: str, default: Any = MISSING) -> Any:
    """Return a field of `Settings` that is an option. If it has no default, every preset sets it."""
    metadata = {"option": Option(read, text)}
    if default is dict:
        return field(default_factory=dict, metadata=metadata)
    return field(default=default, metadata=metadata)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """All options of a run. `planning.expand` looks up the names."""

    study: str | None = _option(
        reading.names,
        "Prepared experiments to run (llpbench list studies); paper: all those of the TabLLP-BDC paper.",
        default=None,
    )
    methods: str = _option(
        reading.names,
        "Methods, such as dllp,tabllp-* or family:classical; default selects the default methods, all every method.",
    )
    datasets: str = _option(reading.names, "Datasets, such as adult,suite:core,openml:31.")
    baggings: str = _option(reading.names, "How rows are grouped into bags, such as ordered, random or column:by=NAME.")
    encoders: str = _option(reading.names, "Encoders of networks.")
    numbers: tuple[str, ...] | None = _option(
        reading.some_of(*NUMBERS),
        "Scaling of numbers: z, scores (normal scores) or robust. [default: depends on the encoder, usually z]",
        default=None,
    )
    """None: as the encoder of a cell declares, otherwise z-scores."""
    pretraining: tuple[str, ...] = _option(
        reading.some_of(*PRETRAININGS),
        "Pretraining of encoders: none, self (two views of a row), bag (bags with similar proportions) or self+bag.",
    )
    bag_sizes: tuple[int, ...] = _option(
        reading.bag_sizes, "Numbers of rows in a bag (at least 2), such as 64,256,1024."
    )
    max_bags: int | None = _option(reading.count, "Use at most N training bags, drawn at random.", default=None)
    seeds: tuple[int, ...] = _option(
        reading.seeds, "Number of seeds (10 means 0 to 9), or a list such as 0,3,7 or 4-6."
    )
    epochs: int | None = _option(reading.count, "Maximum number of epochs.", default=None)
    """None: the paper's value in `Protocol`, as for patience and bags per step."""
    patience: int | None = _option(reading.count, "Stop after this many epochs without improvement.", default=None)
    bags_per_step: int | None = _option(reading.count, "Number of bags in one gradient step of networks.", default=None)
    set: Mapping[str, Mapping[str, Any]] = _option(
        reading.params,
        "Set a hyperparameter; several values are run in turn, such as dllp.learning_rate=1e-4,1e-3.",
        default=dict,
    )
    tune: int | None = _option(reading.count, "Search hyperparameters with this many trials.", default=None)
    tune_regimes: tuple[Regime, ...] = _option(
        reading.some_of("fine", "coarse"),
        "Score trials by validation labels (fine), proportions (coarse) or both.",
        default=("fine", "coarse"),
    )
    tune_sampler: str = _option(reading.one_of(*SAMPLERS), "How trials are sampled: tpe or random.", default="tpe")
    tune_seed: int = _option(
        reading.number, "Seed of the data split for --tune. Must not be one of --seeds.", default=TUNING_SEED
    )
    space: Mapping[str, Mapping[str, Any]] = _option(
        reading.space, "Search ranges by method and hyperparameter.", default=dict
    )
    out: Path = _option(  # noqa: RUF009
        reading.path, "Folder of the journal and the leaderboards.", default=Path("results")
    )
    device: str = _option(reading.device, "Device: auto, cpu, cuda or cuda:N.", default="auto")
    threads: int = _option(
        reading.count, "CPU threads of each cell (one method on one dataset with one bag size, all seeds).", default=1
    )
    compile: bool | None = _option(
        reading.switch, "Compile training steps of networks. [default: only if that saves time]", default=None
    )
    precision: str = _option(
        reading.one_of("float32", "bfloat16"), "Precision of networks: float32 or bfloat16.", default="float32"
    )
    ensemble: int = _option(reading.count, "Number of networks that are averaged for each seed.", default=1)
    average: str = _option(
        reading.average,
        "Train networks without validation for a fixed number of epochs, and average: half (predictions of the second "
        "half of the epochs) or ema (weights), such as half:50. [default: choose an epoch]",
        default="",
    )
    executor: str = _option(
        reading.one_of("auto", *_EXECUTORS),
        f"How cells run: {', '.join(_EXECUTORS)} or auto (ray if several cells can run at a time, otherwise inline).",
        default="auto",
    )
    ray_address: str | None = _option(reading.text, "Ray cluster to use: auto or HOST:PORT.", default=None)
    retry: tuple[str, ...] = _option(
        reading.some_of("failed", "stale", "done"),
        "Runs to repeat: failed, done, stale or all. Stale ones are always repeated, unless you set --keep-stale.",
        default=(),
    )
    keep_stale: bool = _option(
        reading.switch,
        "Keep stale runs (their code has changed) and mark them, instead of repeating them.",
        default=False,
    )
    time_budget: float | None = _option(
        reading.duration, "Stop after this time, such as 540s, 9m or 1.5h.", default=None
    )
    """Seconds."""
    cell_timeout: float | None = _option(
        reading.duration, "Stop a cell after this time, such as 90m or 12h.", default=None
    )
    """Seconds for a cell with all its seeds; None: several times the estimate"""
    save_predictions: bool = _option(reading.switch, "Save predictions to OUT/predictions/RUN.parquet.", default=False)
    plots: bool = _option(
        reading.switch, "Draw the plots of the results into OUT/plots and onto the page. [default: yes]", default=True
    )
    data_dir: str | None = _option(
        reading.folder, "Folder with datasets as NAME.parquet. It is searched before all other places.", default=None
    )
    plugin: tuple[str, ...] = _option(
        reading.files, "Python file that defines methods, datasets and the like.", default=()
    )
    tune_only: bool = False
    """Whether to run only searches (`llpbench tune`)."""
    narrowed: frozenset[str] = frozenset()
    """Options that flags or the file set. With a study they select a part of it."""

    @property
    def repeat(self) -> frozenset[str]:
        """Kinds of runs to repeat: `failed`, `stale`, `done`."""
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
"""Options by name, as in flags (`--name`) and in the configuration file."""


def default(name: str) -> Any:
    """Return the default of an option in the default preset; None if it has none or is decided later."""
    if name in PRESETS[DEFAULT_PRESET]:
        return PRESETS[DEFAULT_PRESET][name]
    value = {item.name: item.default for item in fields(Settings)}[name.replace("-", "_")]
    return None if value is MISSING or value in ((), "") else value


def resolve(flags: Mapping[str, Any], *, preset: str | None = None, config: Path | None = None) -> Settings:
    """Return the settings made from flags (only those given, by name), a configuration file and a preset.

    Raises `LLPBenchError` for unknown names, invalid values, options that exclude each other and unreadable files.
    """
    from_file = _load(config) if config is not None else {}
    default_preset = "paper" if "study" in {**from_file, **flags} else DEFAULT_PRESET
    file_preset = from_file.pop("preset", default_preset)
    values = _read(_preset(file_preset if preset is None else preset), "preset {}")
    for layer in (_read(from_file, f"{{}} in {str(config)!r}"), _read(flags, "--{}")):
        values = _over(values, layer)
    narrowed = frozenset({*from_file, *flags})
    settings = Settings(narrowed=narrowed, **{name.replace("-", "_"): value for name, value in values.items()})
    _require_consistent(settings)
    return settings


def _require_consistent(settings: Settings) -> None:
    """Raise `LLPBenchError` if options exclude each other."""
    if settings.tune is None and (unused := sorted(name for name in settings.narrowed if name.startswith("tune-"))):
        raise LLPBenchError(f"--{unused[0]} needs --tune N. Add it, or leave --{unused[0]} out.")
    if settings.tune and settings.tune_seed in settings.seeds:
        raise LLPBenchError(
            f"--tune-seed {settings.tune_seed} is one of --seeds. Choose another: results must be reported on seeds "
            "that no search has seen."
        )
    study = settings.study is not None
    conflicts = [
        (study and settings.tune, "--tune and --study", "a study fixes its hyperparameters"),
        (study and settings.set, "--set and --study", "a study fixes its hyperparameters"),
        (study and settings.numbers, "--numbers and --study", "a study fixes the scaling"),
        (study and settings.max_bags, "--max-bags and --study", "a study fixes its bags"),
        (settings.tune and settings.ensemble > 1, "--tune and --ensemble", "trials are single networks"),
        (settings.tune and settings.average, "--tune and --average", "a search needs validation"),
        (
            settings.ray_address is not None and settings.executor not in ("auto", "ray"),
            f"--ray-address and --executor {settings.executor}",
            "the address is for Ray",
        ),
        (
            settings.cell_timeout is not None and settings.executor == "debug",
            "--cell-timeout and --executor debug",
            "debug cannot stop a cell",
        ),
        (
            settings.keep_stale and "stale" in settings.retry,
            f"--keep-stale and --retry {','.join(settings.retry)}",
            "stale runs are either kept or repeated",
        ),
    ]
    for conflict, options, reason in conflicts:
        if conflict:
            raise LLPBenchError(f"{options} cannot be combined, because {reason}. Leave one out.")


def _preset(name: Any) -> dict[str, Any]:
    if not isinstance(name, str) or name not in PRESETS:
        raise LLPBenchError(f"unknown preset {name!r}. {hint(str(name), PRESETS)}Available: {', '.join(PRESETS)}.")
    return PRESETS[name]


_LONGEST = 1_000_000
"""Largest number of bytes of a configuration file."""


def _load(config: Path) -> dict[str, Any]:
    try:
        with config.open("rb") as file:
            content = file.read(_LONGEST + 1)  # such as /dev/zero, which has no end
        if len(content) > _LONGEST:
            raise LLPBenchError(f"--config {str(config)!r} is longer than {_LONGEST:,} bytes. Give a TOML file.")
        return tomllib.loads(content.decode("utf-8"))
    except OSError as error:
        raise LLPBenchError(f"--config {str(config)!r} cannot be read: {error.strerror}. Fix the path.") from error
    except (ValueError, RecursionError) as error:  # invalid TOML or UTF-8, or nested too deeply
        raise LLPBenchError(f"--config {str(config)!r} is not TOML: {error}. Fix the file.") from error


def _read(layer: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return the values of a layer in their final types. `where` is the format of names in errors."""
    values = {}
    for name, value in layer.items():
        if name not in OPTIONS:
            valid = [*OPTIONS, "preset"]
            raise LLPBenchError(f"unknown name {where.format(name)}. {hint(name, valid)}Available: {', '.join(valid)}.")
        try:
            values[name] = OPTIONS[name].read(value)
        except ValueError as error:
            items = ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
            text = items if items.strip() else repr(value)
            raise LLPBenchError(f"{where.format(name)} must be {error}, got {text}") from None
    return values


def _over(low: dict[str, Any], high: dict[str, Any]) -> dict[str, Any]:
    """Return the values of both layers, those of `high` first. Options that may be repeated are joined."""
    merged = {**low, **high}
    if "plugin" in low and "plugin" in high:
        merged["plugin"] = tuple(dict.fromkeys((*low["plugin"], *high["plugin"])))
    if "set" in low and "set" in high:
        methods = dict.fromkeys((*low["set"], *high["set"]))
        merged["set"] = {name: {**low["set"].get(name, {}), **high["set"].get(name, {})} for name in methods}
    return merged
