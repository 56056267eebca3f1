"""Settings of a benchmark run, made from presets, a TOML file and flags.

Flags override the file, and the file overrides the preset. Each option is declared once, as a field of `Settings` with
its reader, help text and default.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

from llpbench.core.cell import NUMBERS, SAMPLERS, TUNING_SEED, Average, Environment, Protocol
from llpbench.core.criteria import Regime
from llpbench.core.errors import LLPBenchError
from llpbench.core.files import at_home
from llpbench.core.text import hint

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
_EXECUTORS = ("debug", "inline", "ray")

PRETRAININGS = ("none", "self", "bag", "self+bag")
"""Pretraining tasks of encoders (`pretraining.py`)."""
PRETRAINED, SEARCHES, PREDICTIONS, PLOTS = "pretrained", "tuning", "predictions", "plots"
"""Folders inside an output folder: pretrained weights, searches, predictions and plots."""


T = TypeVar("T")


@dataclass(frozen=True)
class _Reader:
    """A reader of option values, and how its option is written on the command line.

    `read` receives the raw value, which is a text from the command line or any TOML type. For invalid values it raises
    `ValueError` with the expected value: `a positive whole number`.
    """

    read: Callable[[Any], Any]
    metavar: str = ""
    form: Literal["value", "switch", "many"] = "value"
    """Form of the flag.

    - `switch`: --name/--no-name
    - `many`: may be repeated, and adds to the values in the file
    """

    def __call__(self, value: Any) -> Any:
        """Return the value in its final type. Raises `ValueError`."""
        return self.read(value)


_RANGE = re.compile(r"(\d{1,15})-(\d{1,15})")
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600}
_MOST_SEEDS, _LONGEST_RANGE = 100, 10_000
"""Largest number of seeds that a single number means, and of seeds in a range."""


@partial(_Reader, metavar="NAMES")
def _names(value: Any) -> str:
    """Read a comma list, or a list of names, as a comma list."""
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return ",".join(value)
    return str(_text(value))


@partial(_Reader, metavar="ADDRESS")
def _text(value: Any) -> str:
    """Read a text."""
    return str(_require(value, isinstance(value, str), "a text"))


def _at_least(least: int, expected: str) -> _Reader:
    """Return a reader of a whole number."""
    return _Reader(lambda value: _require(_whole(value), _whole(value) >= least, expected), "N")


_count = _at_least(1, "a positive whole number")
_number = _at_least(0, "a whole number, 0 or more")
_average = _Reader(lambda value: str(Average.of(str(value))), "KIND")  # in its canonical form: `half:30`


@partial(_Reader, metavar="SIZES")
def _bag_sizes(value: Any) -> tuple[int, ...]:
    """Read numbers of rows per bag, without duplicates. Rejects 1: the bag of a row reveals its label."""
    sizes = [*map(_whole, _parts(value))]
    _require(sizes, sizes and min(sizes) > 1, "whole numbers of 2 or more (a bag of one row reveals its label)")
    return tuple(dict.fromkeys(sizes))


@partial(_Reader, metavar="SEEDS")
def _seeds(value: Any) -> tuple[int, ...]:
    """Read a number of seeds (10 is 0 to 9), or a list of seeds and ranges: `0,3,7` or `4-6`."""
    if (whole := _whole(value)) >= 0:  # a larger number is probably a mistyped list
        chosen = [*range(whole)] if whole <= _MOST_SEEDS else []
    else:
        parts = [_seeds_of(part) for part in _parts(value)]
        chosen = [seed for part in parts for seed in part] if all(parts) else []
    example = f"0-{whole - 1}" if whole > _MOST_SEEDS else "4-6"
    _require(
        chosen, chosen, f"a number of seeds (1 to {_MOST_SEEDS}), a range such as {example} or a list such as 0,3,7"
    )
    return tuple(dict.fromkeys(chosen))


def _seeds_of(part: Any) -> list[int]:
    """Return a seed or a range of seeds; an empty list for anything else."""
    if (seed := _whole(part)) >= 0:
        return [seed]
    ends = _RANGE.fullmatch(str(part))
    first, last = map(int, ends.groups()) if ends else (1, 0)
    return [*range(first, last + 1)] if last - first < _LONGEST_RANGE else []


@partial(_Reader, form="switch")
def _switch(value: Any) -> bool:
    """Read true or false."""
    return bool(_require(value, isinstance(value, bool), "true or false"))


def _one_of(*choices: str) -> _Reader:
    """Return a reader of one of the choices."""
    return _Reader(lambda value: _require(value, value in choices, " or ".join(choices)), "NAME")


def _some_of(*choices: str) -> _Reader:
    """Return a reader of a list of choices, without duplicates. `all` means all of them."""

    def read(value: Any) -> tuple[str, ...]:
        parts = _parts(value)
        parts = [*choices] if parts == ["all"] else parts
        valid = parts and all(part in choices for part in parts)
        return tuple(dict.fromkeys(_require(parts, valid, f"all, or one or more of {', '.join(choices)}")))

    return _Reader(read, "NAMES")


@partial(_Reader, metavar="DEVICE")
def _device(value: Any) -> str:
    """Read the name of a device."""
    valid = isinstance(value, str) and re.fullmatch(r"auto|cpu|cuda(:\d+)?", value)
    return str(_require(value, valid, "auto, cpu, cuda or cuda:N"))


@partial(_Reader, metavar="TIME")
def _duration(value: Any) -> float:
    """Read a time such as `540s`, `9m`, `1.5h` or a number of seconds, and return seconds."""
    match = re.fullmatch(r"(\d*\.?\d+|\d+\.)\s*([smh]?)", str(value).strip())
    seconds = float(match[1]) * _SECONDS[match[2]] if match else 0.0
    return _require(seconds, 0 < seconds < math.inf, "a time such as 540s, 9m or 1.5h")


@partial(_Reader, metavar="DIR")
def _path(value: Any) -> Path:
    """Read a path. `~` is the home folder."""
    return at_home(_require(value, isinstance(value, str) and value and "\0" not in value, "a path"))


@partial(_Reader, metavar="DIR")
def _folder(value: Any) -> str:
    """Read the path of an existing folder, and return it as an absolute path."""
    absolute = _path(value).absolute()
    return str(_require(absolute, absolute.is_dir(), "a folder that exists"))


@partial(_Reader, metavar="FILE", form="many")
def _files(value: Any) -> tuple[str, ...]:
    """Read one or several paths, and return them as absolute paths."""
    return tuple(str(_path(item).absolute()) for item in ([value] if isinstance(value, str) else _parts(value)))


@partial(_Reader, metavar="METHOD.NAME=VALUES", form="many")
def _params(value: Any) -> dict[str, dict[str, Any]]:
    """Read values of hyperparameters, by method and name.

    They are texts `METHOD.PARAM=VALUE`, or `set.METHOD.PARAM = VALUE` in TOML. A hyperparameter may have several
    values: `1e-4,1e-3` or a list. A value may be a tuple, such as `(1, 2)`.
    """
    form = "METHOD.PARAM=VALUE, such as dllp.learning_rate=1e-3, or several: dllp.learning_rate=1e-4,1e-3"
    if isinstance(value, dict):
        valid = all(isinstance(values, dict) and all(map(_is_scalar, values.values())) for values in value.values())
        return _require(value, valid, form)
    chosen: dict[str, dict[str, Any]] = {}
    for item in value if isinstance(value, list | tuple) else [value]:
        match = re.fullmatch(r"([^=]+)\.([^.=]+)=(.+)", str(item))
        values = [part for each in re.split(r",(?![^(]*\))", match[3]) if (part := each.strip())] if match else []
        if not match or not values:
            raise ValueError(form)
        method, name = match[1].strip(), match[2].strip()
        if name in chosen.setdefault(method, {}):
            raise ValueError(f"given once for {method}.{name}, with all its values: {method}.{name}=A,B")
        chosen[method][name] = values if len(values) > 1 else values[0]
    return chosen


def _is_scalar(value: Any) -> bool:
    """Return whether a value of a TOML file is a scalar or a list of scalars."""
    items = value if isinstance(value, list) and value else [value]
    return all(isinstance(item, str | int | float) for item in items)  # also bool, which is an int


def _parts(value: Any) -> list[Any]:
    """Return the items of a comma list or a list; a single value as a list of one."""
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    return list(value) if isinstance(value, list | tuple) else [value]


def _whole(value: Any) -> int:
    """Return a whole number; -1 for any other value, such as True or 256.0, and for more digits than journals take."""
    is_whole = isinstance(value, int | str) and re.fullmatch(r"[+-]?\d{1,15}", str(value).strip())
    return int(value) if is_whole else -1


def _require(value: T, valid: object, expected: str) -> T:
    """Return a value. Raises `ValueError` with the text `expected` if it is not valid."""
    if not valid:
        raise ValueError(expected)
    return value


class Option(NamedTuple):
    """An option of a run."""

    read: _Reader
    help: str
    default: Any
    """default in the default preset; None if there is none or it is decided later"""


def _option(read: _Reader, text: str, default: Any = MISSING) -> Any:
    """Return a field of `Settings` that is an option. If it has no default, every preset sets it."""
    metadata = {"option": Option(read, text, None if default in (MISSING, dict, (), "") else default)}
    if default is dict:
        return field(default_factory=dict, metadata=metadata)
    return field(default=default, metadata=metadata)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """All options of a run. `planning.expand` looks up the names."""

    study: str | None = _option(
        _names,
        "Prepared experiments to run (llpbench list studies); paper: all those of the TabLLP-BDC paper.",
        default=None,
    )
    methods: str = _option(
        _names,
        "Methods, such as dllp,tabllp-* or family:classical; default selects the default methods, all every method.",
    )
    datasets: str = _option(_names, "Datasets, such as adult,suite:core,openml:31.")
    baggings: str = _option(_names, "How rows are grouped into bags, such as ordered, random or column:by=NAME.")
    encoders: str = _option(_names, "Encoders of networks.")
    numbers: tuple[str, ...] | None = _option(
        _some_of(*NUMBERS),
        "Scaling of numbers: z, scores (normal scores) or robust. [default: depends on the encoder, usually z]",
        default=None,
    )
    """None: as the encoder of a cell declares, otherwise z-scores."""
    pretraining: tuple[str, ...] = _option(
        _some_of(*PRETRAININGS),
        "Pretraining of encoders: none, self (two views of a row), bag (bags with similar proportions) or self+bag.",
    )
    bag_sizes: tuple[int, ...] = _option(_bag_sizes, "Numbers of rows in a bag (at least 2), such as 64,256,1024.")
    max_bags: int | None = _option(_count, "Use at most N training bags, drawn at random.", default=None)
    seeds: tuple[int, ...] = _option(_seeds, "Number of seeds (10 means 0 to 9), or a list such as 0,3,7 or 4-6.")
    epochs: int | None = _option(_count, "Maximum number of epochs.", default=None)
    """None: the paper's value in `Protocol`, as for patience and bags per step."""
    patience: int | None = _option(_count, "Stop after this many epochs without improvement.", default=None)
    bags_per_step: int | None = _option(_count, "Number of bags in one gradient step of networks.", default=None)
    set: Mapping[str, Mapping[str, Any]] = _option(
        _params,
        "Set a hyperparameter; several values are run in turn, such as dllp.learning_rate=1e-4,1e-3.",
        default=dict,
    )
    tune: int | None = _option(_count, "Search hyperparameters with this many trials.", default=None)
    tune_regimes: tuple[Regime, ...] = _option(
        _some_of("fine", "coarse"),
        "Score trials by validation labels (fine), proportions (coarse) or both.",
        default=("fine", "coarse"),
    )
    tune_sampler: str = _option(_one_of(*SAMPLERS), "How trials are sampled: tpe or random.", default="tpe")
    tune_seed: int = _option(
        _number, "Seed of the data split for --tune. Must not be one of --seeds.", default=TUNING_SEED
    )
    out: Path = _option(  # noqa: RUF009
        _path, "Folder of the journal and the leaderboards.", default=Path("results")
    )
    device: str = _option(_device, "Device: auto, cpu, cuda or cuda:N.", default="auto")
    threads: int = _option(
        _count, "CPU threads of each cell (one method on one dataset with one bag size, all seeds).", default=1
    )
    compile: bool | None = _option(
        _switch, "Compile training steps of networks. [default: only if that saves time]", default=None
    )
    precision: str = _option(
        _one_of("float32", "bfloat16"), "Precision of networks: float32 or bfloat16.", default="float32"
    )
    ensemble: int = _option(_count, "Number of networks that are averaged for each seed.", default=1)
    average: str = _option(
        _average,
        "Train networks without validation for a fixed number of epochs, and average: half (predictions of the second "
        "half of the epochs) or ema (weights), such as half:50. [default: choose an epoch]",
        default="",
    )
    executor: str = _option(
        _one_of("auto", *_EXECUTORS),
        f"How cells run: {', '.join(_EXECUTORS)} or auto (ray if several cells can run at a time, otherwise inline).",
        default="auto",
    )
    ray_address: str | None = _option(_text, "Ray cluster to use: auto or HOST:PORT.", default=None)
    retry: tuple[str, ...] = _option(
        _some_of("failed", "stale", "done"),
        "Runs to repeat: failed, done, stale or all. Stale ones are always repeated, unless you set --keep-stale.",
        default=(),
    )
    keep_stale: bool = _option(
        _switch, "Keep stale runs (their code has changed) and mark them, instead of repeating them.", default=False
    )
    time_budget: float | None = _option(_duration, "Stop after this time, such as 540s, 9m or 1.5h.", default=None)
    """Seconds."""
    cell_timeout: float | None = _option(_duration, "Stop a cell after this time, such as 90m or 12h.", default=None)
    """Seconds for a cell with all its seeds; None: several times the estimate"""
    save_predictions: bool = _option(_switch, "Save predictions to OUT/predictions/RUN.parquet.", default=False)
    plots: bool = _option(
        _switch, "Draw the plots of the results into OUT/plots and onto the page. [default: yes]", default=True
    )
    data_dir: str | None = _option(
        _folder, "Folder with datasets as NAME.parquet. It is searched before all other places.", default=None
    )
    plugin: tuple[str, ...] = _option(_files, "Python file that defines methods, datasets and the like.", default=())
    narrowed: frozenset[str] = frozenset()
    """Options that flags or the file set. With a study they select a part of it."""

    @property
    def repeat(self) -> frozenset[str]:
        """Kinds of runs to repeat: `failed`, `stale`, `done`."""
        return frozenset({*self.retry, *(() if self.keep_stale else ("stale",))})

    @property
    def protocol(self) -> Protocol:
        """Limits of the training of neural methods."""
        given = {"epochs": self.epochs, "patience": self.patience, "bags_per_step": self.bags_per_step}
        return Protocol(**{name: number for name, number in given.items() if number is not None})

    @property
    def environment(self) -> Environment:
        """Device, threads, compilation, plugins and folders of cells."""
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
OPTIONS |= {name: OPTIONS[name]._replace(default=value) for name, value in PRESETS[DEFAULT_PRESET].items()}
"""Options by name, as in flags (`--name`) and in the configuration file."""


def resolve(flags: Mapping[str, Any], *, preset: str | None = None, config: Path | None = None) -> Settings:
    """Return the settings made from flags (only those given, by name), a configuration file and a preset.

    Raises `LLPBenchError` for unknown names, invalid values, options that exclude each other and unreadable files.
    """
    from_file = _load(config) if config is not None else {}
    default_preset = "paper" if "study" in {**from_file, **flags} else DEFAULT_PRESET
    file_preset = from_file.pop("preset", default_preset)
    name = file_preset if preset is None else preset
    if not isinstance(name, str) or name not in PRESETS:
        raise LLPBenchError(f"unknown preset {name!r}. {hint(str(name), PRESETS)}Available: {', '.join(PRESETS)}.")
    values = _read(PRESETS[name], "preset {}")
    for layer in (_read(from_file, f"{{}} in {str(config)!r}"), _read(flags, "--{}")):
        values = _over(values, layer)
    narrowed = frozenset({*from_file, *flags})
    settings = Settings(narrowed=narrowed, **{option.replace("-", "_"): value for option, value in values.items()})
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
        (study and settings.average, "--average and --study", "a study chooses epochs by validation"),
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


def _load(config: Path) -> dict[str, Any]:
    try:
        with config.open("rb") as file:
            content = file.read(1_000_001)  # such as /dev/zero, which has no end
        if len(content) > 1_000_000:
            raise ValueError("more than 1,000,000 bytes")
        return tomllib.loads(content.decode("utf-8-sig"))
    except OSError as error:
        raise LLPBenchError(f"--config {str(config)!r} cannot be read: {error.strerror}. Fix the path.") from error
    except (ValueError, RecursionError) as error:  # invalid TOML or UTF-8, too long, or nested too deeply
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
