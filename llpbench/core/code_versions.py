"""Versions of the code behind a result. A run is stale if one of them has changed.

A method, encoder or bagging declares its version in its decorator: `@register_method("dllp", version=1)`. Raise it when
results change. `core.provenance.NUMERICS` is the version of the engine. The version of a dataset is the beginning of
the `sha256` that it declares, which is the fingerprint of its table (`core.tables.Table.fingerprint`).

Without a declaration, the version of a plugin is the hash of its file. The hash of code typed into a notebook is that
of the cell. Both cover neither other files nor other cells.
"""

from __future__ import annotations

import hashlib
import linecache
import sys
from functools import cache
from pathlib import Path
from typing import Any

from llpbench.core.errors import LLPBenchError
from llpbench.core.registry import BAGGINGS, DATASETS, ENCODERS, METHODS, Entry

DIGITS = 16
"""Number of digits of a hash in a version."""


def cell_versions(method: str, dataset: str, bagging: str, encoder: str | None) -> dict[str, str | None]:
    """Return `versions` as in a record; options may follow the name of a bagging (`random:option=1`).

    Imports no further module. Raises `LLPBenchError` if a name is not registered.
    """
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
