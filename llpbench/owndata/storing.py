"""Fitted models: the value that a fit returns, in folders written and read by skops without pickle.

The folder has one file, a zip archive, so it is replaced completely or not at all. `llpbench.json` in the archive
names the method and the versions; all other files are those of skops. Only classes of the packages in `_ROOMS` and of
the file that registers the method are made, besides those that skops trusts. Training rows and bags are of other
packages, so a model that has them cannot be saved.

Nothing can check that the model of another person predicts sensible values. Boosters are read by XGBoost, which a
forged file may crash. Load only what you trust.
"""

from __future__ import annotations

import importlib
import io
import json
import os
from collections.abc import Hashable
from contextlib import suppress
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

from llpbench.core import __version__
from llpbench.core.bags import FloatArray, IntArray
from llpbench.core.errors import LLPBenchError
from llpbench.core.files import obstacle, replace_file, require_unpackable
from llpbench.core.method import Predictor
from llpbench.core.registry import METHODS
from llpbench.core.text import one_line
from llpbench.owndata.bag_effects import BagCalibration, KnownBags
from llpbench.owndata.columns import FeatureColumns
from llpbench.owndata.doubts import Doubts

_FORMAT = 10
"""Version of the format; increased when older models can no longer be read."""
FILE, HEADER = "model.skops", "llpbench.json"
_OURS = ("llpbench.blocks.", "llpbench.owndata.", "llpbench.data.tasks.", "llpbench.core.numbers.")
_ROOMS = (*_OURS, f"{METHODS.package}.")
"""Beginnings of the names of classes that may be stored."""
_ALSO = ("llpbench.core.bags.Schema", "llpbench.core.method.DirectParams", "xgboost.core.Booster")


@dataclass(frozen=True, eq=False, kw_only=True)
class BagFacts:
    """What a fit was given about bags."""

    classes: list[Hashable]  # in ascending order
    order: list[int]  # position in `classes` of each column of an array of counts
    positive: int  # position of the class that a single column counts
    names: list[Hashable]
    counts: FloatArray  # [bags, classes] counts of people, NaN if suppressed
    sizes: IntArray | FloatArray  # [bags] numbers of rows, or sums of their weights
    deviation: float  # standard deviation of the noise of a count
    of_rows: bool  # whether the counts are of these rows, not of whole bags or other people
    left_out: dict[str, int]
    keys: list[str]  # columns that name bags or hold weights
    groupings: int


@dataclass(frozen=True, eq=False, kw_only=True)
class FittedModel:
    """A fitted model, without rows."""

    columns: FeatureColumns
    named: bool  # whether features have names; False for columns of an array
    predictor: Predictor
    bags: BagFacts
    calibration: BagCalibration | None
    doubts: Doubts | None
    known_bags: KnownBags | None = None  # effects of the bags; None until they are computed
    reading: dict[str, Any] = field(default_factory=dict)  # how the file of rows was read

    def write(self, folder: Path, method: str, settings: dict[str, Any]) -> None:
        """Write the model and the settings of its estimator. An earlier model in the folder is replaced.

        Raises `LLPBenchError` for values that cannot be stored, and for a folder that cannot be written or has other
        files. An earlier model then remains.
        """
        header = _header(method)
        data, reason = _dumped({"settings": settings, "model": self}, header["module"])
        if reason:
            advice = "Use texts or numbers as labels of bags and names of classes."
            if _dumped(self.predictor, header["module"])[1]:
                advice = "Use another method, such as auto."
                if not header["module"].startswith(_ROOMS):
                    must = "fit must return an object with __call__, of a class at the top level of the file"
                    advice = f"In {METHODS.entry(method).where}, {must}, not a function."
            raise LLPBenchError(f"a model of {method!r} cannot be saved: it contains {reason}. {advice}")
        with ZipFile(buffer := io.BytesIO(data), "a", ZIP_DEFLATED) as archive:
            archive.writestr(HEADER, json.dumps(header, indent=1))
        require_free(folder)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            replace_file(folder / FILE, buffer.getvalue())
        except OSError as error:
            raise LLPBenchError(f"the model cannot be written to {str(folder)!r}: {one_line(error)}") from error

    @staticmethod
    def read(folder: Path) -> tuple[dict[str, Any], FittedModel]:
        """Return settings and model that `write` wrote. Raises `LLPBenchError` if missing, damaged or forged."""
        import skops.io

        file, model, again = folder / FILE, f"the model in {str(folder)!r}", "Fit it again."
        if not file.is_file():
            reason = f"is not a model: it has no {FILE}" if folder.exists() else "does not exist"
            raise LLPBenchError(f"{str(folder)!r} {reason}. Give the folder that fit saved.")
        try:
            with ZipFile(file) as archive:
                require_unpackable(archive, file)
                header = json.loads(archive.read(HEADER))
            version, method = header["llpbench"], str(header["method"])
            if header.get("format") == _FORMAT and method not in METHODS.names():
                advice = "Use --plugin FILE.py (in Python, import the file first)."
                raise LLPBenchError(f"{model} needs method {method!r} of a plugin that is not loaded. {advice}")
            if header.get("format") != _FORMAT or header != _header(method) | {"llpbench": version}:
                other = f"llpbench {version} with other code of {method!r} or in another format"
                raise LLPBenchError(f"{model} was written by {other}, and this is {__version__}. {again}")
            types = skops.io.get_untrusted_types(file=file)
            trusted = [name for name in types if _is_stored(name, header["module"])]
            if unknown := [name for name in types if name not in trusted and name.startswith("llpbench.")]:
                raise LLPBenchError(f"{model} was saved by another version with {unknown[0]}. {again}")
            content = skops.io.load(file, trusted=trusted)
            settings, found = dict(content["settings"]), content["model"]
            for part, kind in ((found, FittedModel), (found.bags, BagFacts)):
                if type(part) is not kind or {each.name for each in fields(kind)} != vars(part).keys():
                    raise TypeError("its content is not a fitted model of this version")
        except LLPBenchError:
            raise
        except Exception as error:  # a damaged or forged file can have any content
            raise LLPBenchError(f"{model} is damaged, and cannot be read: {one_line(error)}. {again}") from error
        return settings, found


def _dumped(content: Any, plugin: str) -> tuple[bytes, str]:
    """Return the archive of a content, and what in it cannot be stored; "" if everything can."""
    import skops.io

    try:
        data = skops.io.dumps(content, compression=ZIP_DEFLATED)
        types = skops.io.get_untrusted_types(data=data)
    except Exception as error:  # any object of a plugin
        return b"", one_line(error)
    return data, ", ".join(name for name in types if not _is_stored(name, plugin))


def _header(method: str) -> dict[str, Any]:
    """Return what must be the same when a model is read, and the version of this package."""
    code = {"module": METHODS.get(method).__module__, "source": METHODS.entry(method).version}
    return {"format": _FORMAT, "llpbench": __version__, "method": method, **code}


def require_free(folder: Path) -> None:
    """Raise `LLPBenchError` for a folder with other files than a model, or that cannot be read or created."""
    told = obstacle(folder)
    try:
        names = os.listdir(folder) if folder.is_dir() else [folder.name] * folder.exists()
        if not all(name.lstrip(".").startswith(FILE) for name in names):  # killed saves leave a temporary file
            told = "it exists and is not a model"
    except OSError as error:
        told = one_line(error)
    if told:
        raise LLPBenchError(f"the model cannot be written to {str(folder)!r}: {told}. Choose another folder.")


def _is_stored(name: str, plugin: str) -> bool:
    """Return whether a name is that of a class that may be stored. Functions may not: loading could call them."""
    module, _, kind = name.rpartition(".")
    with suppress(ImportError):
        if name.startswith(_ROOMS) or module == plugin:
            value = getattr(importlib.import_module(module), kind, None)
            return isinstance(value, type) and value.__module__ == module
    return name in _ALSO
