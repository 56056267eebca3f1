"""Words that made readers stop: they stay out of code, messages and documentation."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

BANNED = (
    r"however: ",
    r"\b(told|tells?|telling) (\w+ )*apart\b",
    r"\bdealt (out )?(at random|into|anew)\b",
    r"\banew\b",
    r"\bfor want of\b",
    r"\bwhoever\b",
    r"\bof one's own\b",
    r"\bleft? away\b",
    r"\bis level with\b",
    r"\bas good as better\b",
    r"\bwhat there is to\b",
)
"""patterns, in lower case"""

TEXTS = sorted(
    path
    for pattern in ("llpbench/**/*.py", "methods/*.py", "datasets/*.py", "docs/*.md", "*.md", "llpbench/**/*.html")
    for path in ROOT.glob(pattern)
    if path.name not in ("CHANGELOG.md", "tabllp_bdc.py", "bagging_dirichlet.py")  # hashed in results
)


@pytest.mark.parametrize("pattern", BANNED)
def test_no_text_has_a_banned_phrase(pattern: str) -> None:
    banned = re.compile(pattern)
    for path in TEXTS:
        for number, line in enumerate(path.read_text(encoding="utf-8").lower().splitlines(), start=1):
            found = banned.search(line)
            assert found is None, f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
