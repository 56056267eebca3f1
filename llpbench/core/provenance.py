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
import platform
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from llpbench.core import PACKAGE, __version__

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


def _content_hash() -> str:
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
    return {**libraries, "llpbench": f"{__version__} ({_content_hash()})"}


def _git(root: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def cell_versions(method: str, dataset: str, bagging: str, encoder: str | None) -> dict[str, str | None]:
    """Return `versions` as in a record; options may follow the name of a bagging (`random:option=1`).

    Imports no further module. Raises `LLPBenchError` if a name is not registered.
    """
    from llpbench.core.registry import BAGGINGS, DATASETS, ENCODERS, METHODS  # reports work without it

    return {
        "method": METHODS.entry(method).version,
        "dataset": DATASETS.entry(dataset).version,
        "bagging": BAGGINGS.entry(bagging.partition(":")[0]).version,
        "encoder": None if encoder is None else ENCODERS.entry(encoder).version,
    }
