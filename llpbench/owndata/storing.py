"""Fitted models in folders, without pickle: reading a model runs no code from its files.

- `model.json` has the tree of all values, and `arrays.npz` the arrays. Boosters are in XGBoost's format (UBJ).
- `manifest.json` names the version that wrote both files, their SHA-256, and the hash of the method.

A newer model is written to files beside the older ones (`model-2.json`, `arrays-2.npz`, and back). Then the manifest is
replaced. So an interrupted save leaves one complete model.

Objects are stored as the name of their class and their fields. Only classes of the packages in `_ROOMS` and of the file
that registers the method are rebuilt, without calling their code. Functions cannot be stored. Training rows and bags
are of other packages, so a model that has them cannot be saved.

Boosters are first checked in a separate process (`boosters.py`). Nothing can check that the model of another person
predicts sensible values in reasonable time and memory.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import io
import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from llpbench.core.bags import Schema
from llpbench.core.code_versions import version_of
from llpbench.core.errors import LLPBenchError
from llpbench.core.files import obstacle, replace_file
from llpbench.core.method import DirectParams
from llpbench.core.registry import METHODS
from llpbench.core.text import one_line
from llpbench.core.version import __version__
from llpbench.owndata.boosters import keep_sound, require_sound

FORMAT = 3
"""Version of the format; increased when older models can no longer be read."""
MANIFEST, TREE, ARRAYS = "manifest.json", "model.json", "arrays.npz"
_SLOTS = ((TREE, ARRAYS), ("model-2.json", "arrays-2.npz"))
"""Names of the files of a model. The next model uses those that the manifest does not name."""
_BEGINNING = b'{\n "dict": {\n'
"""Largest depth of a tree."""
_KIND = "llpbench model"
_ROOMS = (
    "llpbench.blocks.",
    f"{METHODS.package}.",
    "llpbench.owndata.",
    "llpbench.data.tasks",
    "llpbench.core.numbers",
)
"""Packages whose classes may be stored."""
_ALSO = (Schema, DirectParams)
"""Classes of other packages that predictors often contain."""
_OWN = "the method's file"
"""Name of the module that registers the method, since the file of a plugin may be renamed."""
_WHAT_TO_DO = {
    "bags": "Use texts or numbers as labels of bags.",
    "classes": "Use texts or numbers as names of classes.",
    "predictor": "Choose another method, such as auto. Predictions of this one need the Python session of its fit.",
}
"""Advice by the part of a model that cannot be stored."""
_FOR_AUTHORS = (
    "Choose another method; or return an object from fit. Its class must be at the top level of the method's file, and "
    "it may contain arrays, numbers, texts, lists, dicts and such objects."
)
"""Advice for methods of plugins."""


def write_model(folder: Path, method: str, content: dict[str, Any]) -> None:
    """Write a model. An earlier model in the folder is replaced when the new one is complete.

    Raises `LLPBenchError` for values that cannot be stored, for a folder with other files, and if the disk is full or
    read-only. An earlier model then remains.
    """
    writer = _Writer(METHODS.get(method).__module__)
    told_of = {}
    for name, value in content.items():
        try:
            told_of[name] = writer.tree(value)
        except _UnstorableError as held:
            own = name == "predictor" and not METHODS.get(method).__module__.startswith(f"{METHODS.package}.")
            why = f": its {name} contains {held}" if own or name != "predictor" else ""
            what = f"a model of {method!r} cannot be saved{why}. {_FOR_AUTHORS if own else _WHAT_TO_DO.get(name, '')}"
            raise LLPBenchError(what.rstrip()) from held
    tree = json.dumps({"dict": told_of}, indent=1)
    buffer = io.BytesIO()
    np.savez(buffer, **{str(number): array for number, array in enumerate(writer.arrays)})  # type: ignore[arg-type]
    require_free(folder)
    old, new = _SLOTS if _slot(folder) == _SLOTS[0] else reversed(_SLOTS)
    parts = dict(zip(new, (tree.encode(), buffer.getvalue()), strict=True))
    told = {
        "kind": _KIND,
        "format": FORMAT,
        "llpbench": __version__,
        "method": method,
        "source": version_of(METHODS.entry(method)),
        "sha256": {name: hashlib.sha256(data).hexdigest() for name, data in parts.items()},
    }
    manifest = {**told, "digest": _digest(told)}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in {**parts, MANIFEST: json.dumps(manifest, indent=1).encode()}.items():
            replace_file(folder / name, data)
    except OSError as error:
        _remove(folder, new)
        raise LLPBenchError(f"the model cannot be written to {str(folder)!r}: {one_line(error)}") from error
    _remove(folder, [*old, *filter(_is_half_written, os.listdir(folder))])


def _slot(folder: Path) -> tuple[str, ...] | None:
    """Return the names of the files of the model in a folder; None without a model, or if it is damaged."""
    try:
        named = tuple(json.loads((folder / MANIFEST).read_bytes())["sha256"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return named if named in _SLOTS else None


def _remove(folder: Path, names: Iterable[str]) -> None:
    """Remove files that the manifest does not name."""
    for name in names:
        with contextlib.suppress(OSError):  # the next model replaces them
            (folder / name).unlink(missing_ok=True)


def require_free(folder: Path) -> None:
    """Raise `LLPBenchError` for a folder with other files than a model, or that cannot be read or created."""
    try:
        if folder.exists() and not (folder.is_dir() and ((folder / MANIFEST).is_file() or _is_beginning(folder))):
            raise LLPBenchError(f"{str(folder)!r} exists and is not a model. Choose another folder.")
    except OSError as error:
        raise LLPBenchError(f"the model cannot be written to {str(folder)!r}: {one_line(error)}") from error
    if told := obstacle(folder):
        raise LLPBenchError(f"the model cannot be written to {str(folder)!r}: {told}. Choose another folder.")


def _is_beginning(folder: Path) -> bool:
    """Return whether a folder is empty, or has only files of an interrupted save."""
    left = {name for name in os.listdir(folder) if not _is_half_written(name)}
    if TREE in left:  # other programs have files of this name, too
        with open(folder / TREE, "rb") as file:
            left -= {TREE, ARRAYS} if file.read(len(_BEGINNING)) == _BEGINNING else set()
    return not left


def _is_half_written(name: str) -> bool:
    """Return whether a file is a part of a model that `replace_file` left when it was killed."""
    return name.startswith((".model", ".arrays", f".{MANIFEST}")) and name.endswith(".tmp")


def read_model(folder: Path) -> dict[str, Any]:
    """Read a model of `write_model`. Raises `LLPBenchError` if it is missing, damaged, changed, or of other code."""
    manifest = _manifest(folder)
    try:
        return _read(folder, manifest)
    except LLPBenchError:
        if _manifest(folder) == manifest:
            raise
    return read_model(folder)  # another process has replaced it


def _read(folder: Path, manifest: dict[str, Any]) -> dict[str, Any]:
    method = manifest["method"]
    if method not in METHODS.names():
        raise LLPBenchError(
            f"the model in {str(folder)!r} needs method {method!r} of a plugin that is not loaded. Use "
            "--plugin FILE.py (in Python, import the file first)."
        )
    parts: list[bytes] = []
    for name, digest in manifest["sha256"].items():
        parts.append(_bytes(folder / name))
        if hashlib.sha256(parts[-1]).hexdigest() != digest:
            raise LLPBenchError(f"file {str(folder / name)!r} has changed since it was saved. Save the model again.")
    declared = METHODS.get(method)
    if version_of(METHODS.entry(method)) != manifest["source"]:
        raise LLPBenchError(
            f"the model in {str(folder)!r} was fitted with different code of {method!r} (by llpbench "
            f"{manifest['llpbench']}, this is {__version__}). Fit it again."
        )
    tree, packed = parts
    try:
        with np.load(io.BytesIO(packed), allow_pickle=False) as archive:
            arrays = [archive[str(number)] for number in range(len(archive.files))]
        read = json.loads(tree)
        require_sound([arrays[place].tobytes() for place in _boosters(read)])
        found = _value(read, arrays, declared.__module__)
        if not isinstance(found, dict):
            raise TypeError("the model is not a mapping")
    except Exception as error:  # a forged file can have any content
        raise LLPBenchError(f"the model in {str(folder)!r} cannot be read: {one_line(error)}. Fit it again.") from error
    return found


def _manifest(folder: Path) -> dict[str, Any]:
    file = folder / MANIFEST
    if not file.is_file():
        raise LLPBenchError(f"{str(folder)!r} is not a model: it has no {MANIFEST}. Give the folder that fit saved.")
    try:
        manifest = json.loads(_bytes(file))
        told = {name: value for name, value in manifest.items() if name != "digest"}
        whole = manifest["digest"] == _digest(told) and manifest["kind"] == _KIND
    except (ValueError, KeyError, TypeError, AttributeError):
        whole = False
    if not whole:
        raise LLPBenchError(f"file {str(file)!r} is damaged or not part of a model. Fit and save the model again.")
    if manifest["format"] != FORMAT:
        raise LLPBenchError(
            f"the model in {str(folder)!r} must have format {FORMAT}, got {manifest['format']}: it was "
            f"written by llpbench {manifest['llpbench']}, and this is {__version__}. Fit it again."
        )
    if not isinstance(manifest["sha256"], dict) or tuple(manifest["sha256"]) not in _SLOTS:
        raise LLPBenchError(f"file {str(file)!r} lists files that do not belong to a model. Save the model again.")
    return dict(manifest)


def _digest(facts: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def _bytes(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise LLPBenchError(f"file {str(file)!r} of the model cannot be read: {one_line(error)}") from error


class _UnstorableError(Exception):
    """Description of a value that cannot be stored."""


class _Writer:
    """Writer of values as JSON, with separate arrays."""

    def __init__(self, module: str) -> None:
        """`module`: the one that registers the method."""
        self.arrays: list[Any] = []
        self._module = module

    def tree(self, value: Any) -> Any:
        """Return the tree from which `_value` restores `value`."""
        import xgboost

        if value is None or type(value) in (bool, int, float, str):
            return value
        if isinstance(value, np.ndarray | np.generic) and value.dtype != object:
            return {"array" if isinstance(value, np.ndarray) else "scalar": self._keep(np.asarray(value))}
        if type(value) in (list, tuple):
            return {type(value).__name__: [self.tree(each) for each in value]}
        if type(value) is dict and all(type(key) is str for key in value):
            return {"dict": {key: self.tree(each) for key, each in value.items()}}
        if isinstance(value, xgboost.Booster):
            content = bytes(value.save_raw("ubj"))
            keep_sound(content)
            return {"booster": self._keep(np.frombuffer(content, np.uint8))}
        kind = type(value)
        if _is_allowed(kind, self._module) and hasattr(value, "__dict__"):
            getstate = value.__getstate__()
            state = getstate if isinstance(getstate, dict) else dict(value.__dict__)
            room = kind.__module__ if kind.__module__.startswith("llpbench.") else _OWN
            return {"object": [room, kind.__qualname__, self.tree(state)]}
        raise _UnstorableError(f"a {kind.__name__} of {getattr(value, '__module__', kind.__module__)}")

    def _keep(self, array: Any) -> int:
        self.arrays.append(array)
        return len(self.arrays) - 1


def _value(tree: Any, arrays: list[Any], plugin: str) -> Any:
    """Restore a value from a tree of `_Writer.tree`. Raises an error for any other tree.

    `plugin` is the module that registers the method. Its classes may be restored, too.
    """
    import xgboost

    if not isinstance(tree, dict):
        return tree
    ((kind, inside),) = tree.items()
    if kind == "array":
        return arrays[inside]
    if kind == "scalar":
        return arrays[inside][()]
    if kind == "list":
        return [_value(each, arrays, plugin) for each in inside]
    if kind == "tuple":
        return tuple(_value(each, arrays, plugin) for each in inside)
    if kind == "dict":
        return {key: _value(each, arrays, plugin) for key, each in inside.items()}
    if kind == "booster":
        return xgboost.Booster(model_file=bytearray(arrays[inside].tobytes()))
    if kind == "object":
        module, name, state = inside
        return _made(_named(plugin if module == _OWN else module, name, plugin), _value(state, arrays, plugin))
    raise ValueError(f"unknown kind of value {kind!r}")


def _boosters(tree: Any) -> Iterator[int]:
    """Return the positions of arrays that are boosters."""
    if isinstance(tree, dict):
        if isinstance(place := tree.get("booster"), int):
            yield place
        for each in tree.values():
            yield from _boosters(each)
    elif isinstance(tree, list):
        for each in tree:
            yield from _boosters(each)


def _made(kind: Any, state: dict[str, Any]) -> Any:
    if not isinstance(kind, type):
        raise TypeError(f"{kind!r} is not a class")
    if is_dataclass(kind) and {field.name for field in fields(kind)} - state.keys():
        raise ValueError(f"{kind.__name__} has different fields in this version")
    made: Any = object.__new__(kind)
    made.__dict__.update(state)
    return made


def _named(module: str, name: str, plugin: str) -> Any:
    """Return a class that may be stored, by its name."""
    if not (module.startswith(_ROOMS) or module == plugin or (module, name) in _also()):
        raise ValueError(f"classes of {module} cannot be part of a model")
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = vars(found)[part]
    if found.__module__ != module:
        raise ValueError(f"{name} is not defined in {module}")
    return found


def _is_allowed(kind: type, plugin: str) -> bool:
    """Return whether `_named` finds this class."""
    try:
        return _named(kind.__module__, kind.__qualname__, plugin) is kind
    except (ValueError, KeyError):
        return False


def _also() -> set[tuple[str, str]]:
    return {(kind.__module__, kind.__qualname__) for kind in _ALSO}
