"""Built-in suites of datasets: `--datasets suite:core` (`llpbench list suites`).

`embedded` contains every redistributable dataset with labels that is embedded in the package and has 5,000 to 150,000
rows, and a seeded sample of larger ones. Results of methods had no influence. Except for `paper`, the other suites
follow from declarations and facts of datasets. They also contain datasets that may not be redistributed: `--data-dir`
finds these.
"""

from __future__ import annotations

from llpbench.core.registry import register_suite
from llpbench.data.specs import built_in_facts, dataset_spec


@register_suite("paper")
def _paper() -> tuple[str, ...]:
    """The seven public datasets of the TabLLP-BDC paper."""
    return ("adult", "bank_marketing", "california", "credit", "electricity", "road_safety", "movielens_1m")


@register_suite("embedded")
def _embedded() -> tuple[str, ...]:
    """Included datasets of 5,000 to 150,000 rows with at least two classes; nothing is downloaded."""
    names = """
        adult ai4i2020 bank_marketing bike_sharing covid_testing default_credit eeg_eye_state htru2 kc_house
        lending_club magic nass_cds online_shoppers oulad polish_bankruptcy telco_churn wine_quality
        avila connect_4 diabetes130 diamonds fars flights_2013_sample hotel_bookings letter nursery optdigits
        pendigits portal_rodents satimage shuttle
    """
    return tuple(names.split())


@register_suite("core")
def _core() -> tuple[str, ...]:
    """Two-class datasets of `embedded`: those of the core boards."""
    return tuple(name for name in _embedded() if len(built_in_facts()[name].classes) == 2)


@register_suite("natural")
def _natural() -> tuple[str, ...]:
    """Datasets with natural bags, such as days, states, schools and clinics."""
    return tuple(name for name in built_in_facts() if dataset_spec(name).natural_keys)


@register_suite("rare")
def _rare() -> tuple[str, ...]:
    """Datasets with two classes, the rarer one with 1 to 8 % of the rows."""
    two = {name: facts for name, facts in built_in_facts().items() if len(facts.classes) == 2}
    return tuple(name for name, facts in two.items() if 0.01 <= min(facts.classes.values()) / facts.rows <= 0.08)


@register_suite("multiclass")
def _multiclass() -> tuple[str, ...]:
    """Datasets with more than two classes."""
    return tuple(name for name, facts in built_in_facts().items() if len(facts.classes) > 2)
