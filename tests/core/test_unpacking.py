"""Small files that unpack to very large ones are refused before they fill the memory."""

from __future__ import annotations

import bz2
import gzip
import lzma
import resource
from collections.abc import Callable
from pathlib import Path

import pytest

from llpbench.core.errors import DataError
from llpbench.core.files import open_packed
from llpbench.results.journal import read

PACKERS: dict[str, Callable[[bytes], bytes]] = {"gzip": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}


@pytest.mark.parametrize("kind", PACKERS)
def test_unpacking_stops_at_limit(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "rows"
    path.write_bytes(PACKERS[kind](bytes(50_000_000)))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with open_packed(path, kind, always=1000) as file, pytest.raises(DataError, match="unpacks from"):
        file.read()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 30_000, "kilobytes"
    with open_packed(path, kind) as file:
        assert file.read() == bytes(50_000_000)


def test_shard_that_unpacks_to_too_much_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "adult.jsonl.xz"
    path.write_bytes(lzma.compress(b"{" + b" " * 30_000_000))
    with pytest.raises(DataError, match="unpacks from"):
        read(path)
