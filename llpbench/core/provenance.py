"""Facts needed to trust and repeat a result: code, libraries, time.

A run is stale if the version of the engine (`NUMERICS`) or of the code of its cell has changed. A method, encoder or
bagging declares its version in its decorator: `@register_method("dllp", version=1)`. Raise it when results change. The
version of a dataset is the beginning of the `sha256` that it declares, which is the fingerprint of its table
(`core.tables.Table.fingerprint`).

Without a declaration, the version of a plugin is the hash of its file. The hash of code typed into a notebook is that
of the cell. Both cover neither other files nor other cells.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import linecache
import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llpbench.core import PACKAGE, __version__
from llpbench.core.errors import LLPBenchError

if TYPE_CHECKING:
    from llpbench.core.registry import Entry

NUMERICS = 1
"""Version of the engine, stored in every record: runs of another version are stale.

Raise it in any commit that changes results: another split, order of random numbers, initial weights, optimiser,
criterion or arithmetic. This includes modules that methods share, such as `blocks`. Methods, datasets, baggings and
encoders have versions of their own.
"""

_LIBRARIES = ("torch", "numpy", "scipy", "scikit-learn", "pandas")


@cache
def software_facts() -> dict[str, Any]:
    """Return `code` (version, commit, dirty) and `libraries`, as in a record."""
    libraries = {name: importlib.metadata.version(name) for name in _LIBRARIES}
    for name in ("xgboost-cpu", "xgboost"):  # the same library, without and with GPU code
        with suppress(importlib.metadata.PackageNotFoundError):
            libraries["xgboost"] = importlib.metadata.version(name)
    return {"code": _code_facts(), "libraries": {"python": platform.python_version(), **libraries}}


def _code_facts() -> dict[str, Any]:
    """Return version, git commit and whether the code differs from it; the commit is None outside a checkout."""
    root = PACKAGE.parent
    facts: dict[str, Any] = {"version": __version__, "commit": None, "dirty": None}
    if (root / ".git").exists():
        code = ("llpbench", "methods", "datasets")
        commit, changes = _git(root, "rev-parse", "HEAD"), _git(root, "status", "--porcelain", "--", *code)
        if commit is not None:
            facts |= {"commit": commit, "dirty": changes != ""}
    return facts


def content_hash() -> str:
    """Return the hash of all Python files of llpbench, including methods and datasets: 12 hexadecimal digits."""
    beside = [PACKAGE.parent / name for name in ("methods", "datasets") if not (PACKAGE / name).is_dir()]
    named = [(file.relative_to(PACKAGE), file) for file in PACKAGE.rglob("*.py")]
    named += [(file.relative_to(PACKAGE.parent), file) for folder in beside for file in folder.rglob("*.py")]
    digest = hashlib.sha256()
    for name, file in sorted(named):
        digest.update(f"{name.as_posix()}\0".encode() + file.read_bytes())
    return digest.hexdigest()[:12]


@cache
def software() -> Mapping[str, Any]:
    """Return the versions of libraries that affect results, and a hash of llpbench's files."""
    libraries = {name: version for name, version in software_facts()["libraries"].items() if name != "python"}
    return {**libraries, "llpbench": f"{__version__} ({content_hash()})"}


def require_software(required: Mapping[str, Any]) -> None:
    """Raise `LLPBenchError` if this machine has other software."""
    installed = software()
    for name in installed.keys() | required.keys():
        if installed.get(name) != required.get(name):
            raise LLPBenchError(
                f"machine {os.uname().nodename!r} must have {name} {required.get(name)} like the machine that "
                f"started this run, got {installed.get(name)}. Install the same version on every machine."
            )


def _git(root: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


DIGITS = 16
"""Number of digits of a hash in a version."""


def cell_versions(method: str, dataset: str, bagging: str, encoder: str | None) -> dict[str, str | None]:
    """Return `versions` as in a record; options may follow the name of a bagging (`random:option=1`).

    Imports no further module. Raises `LLPBenchError` if a name is not registered.
    """
    from llpbench.core.registry import BAGGINGS, DATASETS, ENCODERS, METHODS  # reports work without it

    return {
        "method": version_of(METHODS.entry(method)),
        "dataset": version_of(DATASETS.entry(dataset)),
        "bagging": version_of(BAGGINGS.entry(bagging.partition(":")[0])),
        "encoder": None if encoder is None else version_of(ENCODERS.entry(encoder)),
    }


def version_of(entry: Entry) -> str | None:
    """Return the version of an entry: "1", the start of a `sha256`, "file:HASH" or "cell:HASH".

    None for an entry of llpbench that declares neither, such as a dataset of OpenML. Raises `LLPBenchError` if the
    source of typed code is not available.
    """
    if entry.facts.get("version") is not None:
        return str(entry.facts["version"])
    if entry.facts.get("sha256"):
        return str(entry.facts["sha256"])[:DIGITS]
    return None if entry.module.startswith("llpbench.") else _source_hash(entry.target)


@cache
def _source_hash(target: Any) -> str:
    """Return the hash of a class's or function's file, or of its notebook cell.

    It is computed once, so that edits during a run do not affect it.
    """
    file = getattr(sys.modules.get(target.__module__), "__file__", None)
    if file is not None and Path(file).is_file():
        return f"file:{_hash(Path(file).read_bytes())}"
    parts = [target, *(vars(target).values() if isinstance(target, type) else ())]
    functions = (getattr(part, "__func__", part) for part in parts)
    names = (function.__code__.co_filename for function in functions if hasattr(function, "__code__"))
    text = next(filter(None, ("".join(linecache.getlines(name)) for name in names)), "")
    if not text:
        raise LLPBenchError(
            f"the source of {target.__qualname__!r} is unknown, so its stale results could not be detected. "
            "Put it into a file, and load it with --plugin."
        )
    return f"cell:{_hash(text.encode())}"


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:DIGITS]


def utc_now() -> str:
    """Return the current time in UTC, ISO 8601 to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")
