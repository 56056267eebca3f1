"""What is needed to trust a result and to repeat it: code, libraries, time."""

from __future__ import annotations

import hashlib
import importlib.metadata
import platform
import subprocess
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from llpbench.core.version import PACKAGE, __version__

NUMERICS = 1
"""Version of what the engine computes, in every record: runs of another one are stale.

Raise it by one, in the commit that does it, when results change or may have changed: another split, order of random
numbers, initial weights, optimiser, criterion, or arithmetic; also after a refactoring of any of these. Where nothing
has changed after all, a sample of runs made again proves it, and the others are kept (`llpbench restamp`). What stands
in a method, dataset, bagging or encoder is not the engine's: its own source says when it changes (`source_hash.py`).
"""

LIBRARIES = ("torch", "numpy", "scipy", "scikit-learn", "pandas")
_XGBOOST = ("xgboost-cpu", "xgboost")
"""one library under two names: without and with the code for GPUs"""


@cache
def software_facts() -> dict[str, Any]:
    """`code` (version, commit, dirty) and `libraries`, as a record has them."""
    libraries = {name: importlib.metadata.version(name) for name in LIBRARIES}
    for version in map(_version, _XGBOOST):
        if version is not None:
            libraries["xgboost"] = version
    return {"code": code_facts(), "libraries": {"python": platform.python_version(), **libraries}}


def _version(name: str) -> str | None:
    """Of a library; None where it is not installed."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def code_facts() -> dict[str, Any]:
    """Version, git commit and whether the code differs from it; commit null where it is not run from a checkout."""
    root = PACKAGE.parent
    facts: dict[str, Any] = {"version": __version__, "commit": None, "dirty": None}
    if (root / ".git").exists():
        code = ("llpbench", "methods", "datasets")
        commit, changes = _git(root, "rev-parse", "HEAD"), _git(root, "status", "--porcelain", "--", *code)
        if commit is not None:
            facts |= {"commit": commit, "dirty": changes != ""}
    return facts


def content_hash() -> str:
    """12 hexadecimal digits: of every Python file of this installation or checkout, methods and datasets included."""
    package = PACKAGE
    beside = [package.parent / name for name in ("methods", "datasets") if not (package / name).is_dir()]
    digest = hashlib.sha256()
    named = [(file.relative_to(package), file) for file in package.rglob("*.py")]
    named += [(file.relative_to(package.parent), file) for folder in beside for file in folder.rglob("*.py")]
    for name, file in sorted(named):
        digest.update(f"{name.as_posix()}\0".encode() + file.read_bytes())
    return digest.hexdigest()[:12]


def _git(root: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def utc_now() -> str:
    """Now, in UTC, ISO 8601 to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")
