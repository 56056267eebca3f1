"""README's result section says what the published journal says, number by number, and nothing else."""

from __future__ import annotations

import re

import pytest
from claims import LIST, NO_RESULTS, NOT_OF_THE_JOURNAL, Claim, Published, claims, flat, listed, result_section


@pytest.fixture(scope="module")
def found() -> list[Claim]:
    return [*claims(Published())]


def test_every_claim_stands_in_readme_as_it_is_computed(found: list[Claim]) -> None:
    section = result_section()
    assert len(found) > 20
    assert [claim.text for claim in found if flat(claim.text) not in section] == []


def test_readme_has_no_number_without_a_claim(found: list[Claim]) -> None:
    left = re.sub(r"\(\S+\.(png|md)\)", "", result_section())
    for words in sorted((*(flat(claim.text) for claim in found), *NOT_OF_THE_JOURNAL, *NO_RESULTS), key=len)[::-1]:
        assert words in result_section(), f"no words of README: {words}"
        left = left.replace(words, " ")
    numbers = [left[max(at.start() - 30, 0) : at.end() + 20] for at in re.finditer(r"\d+(\.\d+)?", left)]
    assert numbers == []


def test_the_list_is_what_the_journal_says(found: list[Claim]) -> None:
    assert LIST.read_text(encoding="utf-8") == listed(found), "write it anew: python tests/report/claims.py"
