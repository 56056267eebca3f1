"""Facts needed to trust and repeat a result: code, libraries, time."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import platform
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from llpbench.core import PACKAGE, __version__
from llpbench.core.errors import LLPBenchError

NUMERICS = 1
"""Version of the engine, stored in every record: runs of another version are stale.

Raise it in any commit that changes results: another split, order of random numbers, initial weights, optimiser,
criterion or arithmetic. This includes modules that methods share, such as `blocks`. Methods, datasets, baggings and
encoders have versions of their own (`core/code_versions.py`).
"""

_LIBRARIES = ("torch", "numpy", "scipy", "scikit-learn", "pandas")
_XGBOOST = ("xgboost-cpu", "xgboost")
"""two names of the same library, without and with GPU code"""


@cache
def software_facts() -> dict[str, Any]:
    """Return `code` (version, commit, dirty) and `libraries`, as in a record."""
    libraries = {name: importlib.metadata.version(name) for name in _LIBRARIES}
    for version in map(_version, _XGBOOST):
        if version is not None:
            libraries["xgboost"] = version
    return {"code": _code_facts(), "libraries": {"python": platform.python_version(), **libraries}}


def _version(name: str) -> str | None:
    """Return the version of a library; None if it is not installed."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


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
    package = PACKAGE
    beside = [package.parent / name for name in ("methods", "datasets") if not (package / name).is_dir()]
    digest = hashlib.sha256()
    named = [(file.relative_to(package), file) for file in package.rglob("*.py")]
    named += [(file.relative_to(package.parent), file) for folder in beside for file in folder.rglob("*.py")]
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


def utc_now() -> str:
    """Return the current time in UTC, ISO 8601 to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")
