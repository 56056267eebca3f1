"""The files of methods, encoders and baggings, as they were when somebody last vouched for their versions.

Each line of `versions.txt` has a file, the versions of its entries, the hash of the file, and for a file that was
changed without new versions, the proof that its results are the same. If results change, raise the version and run

    python -m tests.versions

If results do not change, as after a new comment, name the command that shows it, or the reason:

    python -m tests.versions "only comments"
"""

from __future__ import annotations

import hashlib
import sys
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

from llpbench.core.registry import BAGGINGS, DIGITS, ENCODERS, METHODS

ROOT = Path(__file__).parents[1]
FILE = ROOT / "tests" / "versions.txt"


class Vouched(NamedTuple):
    """A file with the versions of its entries."""

    versions: str
    hash: str
    proof: str = ""
    """why results are the same though the file changed; "" since the versions are new"""


def current() -> dict[str, Vouched]:
    """Return the files as they are, by path."""
    versions: dict[str, list[str]] = defaultdict(list)
    for registry in (METHODS, ENCODERS, BAGGINGS):
        for entry in registry.entries():
            package, _, name = entry.module.removeprefix("llpbench.").partition(".")
            folder = package if (ROOT / package).is_dir() else f"llpbench/{package}"
            versions[f"{folder}/{name}.py"].append(f"{entry.name}={entry.version}")
    hashes = {path: hashlib.sha256((ROOT / path).read_bytes()).hexdigest()[:DIGITS] for path in versions}
    return {path: Vouched(",".join(versions[path]), hashes[path]) for path in sorted(versions)}


def vouched() -> dict[str, Vouched]:
    """Return the lines of `versions.txt`, by path."""
    lines = (line.split(maxsplit=3) for line in FILE.read_text(encoding="utf-8").splitlines())
    return {path: Vouched(*facts) for path, *facts in lines}


def unproven() -> list[str]:
    """Return the files that changed though their versions did not."""
    before = vouched()
    both = [(path, before[path], now) for path, now in current().items() if path in before]
    return [path for path, old, new in both if old.versions == new.versions and old.hash != new.hash]


def update(proof: str = "") -> None:
    """Write `versions.txt`. Raises `SystemExit` if a file needs a proof and there is none."""
    before, changed = vouched() if FILE.exists() else {}, unproven()
    if changed and not proof:
        raise SystemExit(f"{', '.join(changed)}: raise the version, or give the command that shows the same results")
    lines = []
    for path, now in current().items():
        if path in before and before[path][:2] == now[:2]:
            now = before[path]
        elif path in changed:
            now = now._replace(proof=proof)
        lines.append(f"{path} {' '.join(now)}".rstrip() + "\n")
    FILE.write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    update(" ".join(sys.argv[1:]))
