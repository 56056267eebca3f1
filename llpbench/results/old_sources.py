"""Records of journals of schema 2 and 3, which have hashes of source code instead of versions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_FIRST = """
    06ed0b5ab5a0053d 0d2a2e2c980f8f59 0dadb767adac2a13 14c11324b56e5eeb 1bac75f5c49f598e 1cf6470eae55027b
    2034be7fcfe35596 224192de7b45f296 2256d1d6499757f5 26da458a233a5028 2813a1d3ff238489 2cf5d86b82b5e118
    36b01f1822fc80a5 3a200c28e45a33ba 3be9696be2a32c68 41b682570a55236a 48931988971c4098 4c3c6c9a7ec2a3dc
    4c6badbd0f0cf9b8 4ff7ff5f8e5591d6 518f74a8604ccde8 53046b0543cd9d6b 5547a2aa04097521 73fdca39e2ccd988
    746a49203cca2aab 7bdc481ceae3eed7 7f96f650abc2b4ce 85e7f9cc1b66ccc3 8f7c4203c940d46b 9519174085f49174
    9711180a89bcae13 99933b57edadb910 9a52f7a39067c2f5 a5bfcf093e3a22de a7962381c5a5291c a9af00a7ff8a6576
    adc933b10111f479 bf3b3aad840702ef c14a982a25b3f8ba c187c54be637e494 c1f3aaa1e508b01e c5e4ef346d59127c
    ccd31dbb5dc4b9fb ce20ad6e3690bad2 d2b995e1efac624c d57d52d842f581ae e171e0e3a8c8b62a e1f5f5d067bb7b27
    e2a2e8dbaf74284f e6b872281ac1ecce ea0eb1e9961d5a24 eccb185719a14d16 ecddbaf69ef3b461 eecb864458fe4a4f
    f01461819bb0399e f42d97a74ac476fe faad5f3415bce239 fbfc562403ec646b
"""
"""Hashes of the methods, encoders and baggings that became version 1."""


def with_versions(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record with `versions` in place of `sources`.

    The source of a built-in method, encoder or bagging becomes "1". The dataset gets the fingerprint of its table, or
    None if the record has none. Other sources become "source:HASH", so that the record is stale.
    """
    sources, data = record.get("sources"), record.get("data")
    if not isinstance(sources, dict):
        return dict(record)
    table = data.get("fingerprint") if isinstance(data, dict) else None
    versions = {part: _version(source) for part, source in sources.items()}
    if "dataset" in versions:
        versions["dataset"] = table[:16] if isinstance(table, str) else None
    return {
        "versions" if name == "sources" else name: versions if name == "sources" else value
        for name, value in record.items()
    }


def _version(source: Any) -> Any:
    if not isinstance(source, str):
        return source
    return "1" if source in _FIRST.split() else f"source:{source}"
