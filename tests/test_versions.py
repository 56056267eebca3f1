"""Files of methods, encoders and baggings change only with their versions, or with a proof of the same results."""

from __future__ import annotations

from pathlib import Path

import pytest
import versions
from versions import Vouched, current, unproven, update, vouched

REMEDY = "raise its version, then `python -m tests.versions`; or `python -m tests.versions 'COMMAND that shows it'`"


def test_changed_file_has_new_version_or_proof() -> None:
    assert not unproven(), f"changed, with the same version: {REMEDY}"
    assert {path: facts[:2] for path, facts in vouched().items()} == {
        path: facts[:2] for path, facts in current().items()
    }, "tests/versions.txt is not up to date: python -m tests.versions"


def test_change_without_new_version_needs_a_proof(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(versions, "FILE", tmp_path / "versions.txt")
    now = {"a.py": Vouched("a=1", "0" * 16), "b.py": Vouched("b=1", "1" * 16)}
    monkeypatch.setattr(versions, "current", lambda: now)
    (tmp_path / "versions.txt").write_text("")
    update()
    assert vouched() == now
    now["a.py"], now["b.py"] = Vouched("a=1", "2" * 16), Vouched("b=2", "3" * 16)
    assert unproven() == ["a.py"]
    with pytest.raises(SystemExit, match=r"^a\.py: raise the version"):
        update()
    update("only comments")
    assert vouched() == {"a.py": Vouched("a=1", "2" * 16, "only comments"), "b.py": now["b.py"]}
    update()
    assert vouched()["a.py"].proof == "only comments"
