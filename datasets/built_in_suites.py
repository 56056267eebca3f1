"""Built-in suites of datasets: `--datasets suite:core` (`llpbench list suites`).

`core` follows a rule. It contains every redistributable dataset with labels that is embedded in the package and has
5,000 to 150,000 rows, and a seeded sample of larger ones. Results of methods had no influence. The other suites follow
from the declarations of datasets. They also contain datasets that may not be redistributed: `--data-dir` finds these.
"""

from __future__ import annotations

from llpbench.core.registry import register_suite


@register_suite("paper")
def _paper() -> tuple[str, ...]:
    """The seven public datasets of the TabLLP-BDC paper."""
    return ("adult", "bank_marketing", "california", "credit", "electricity", "road_safety", "movielens_1m")


@register_suite("core")
def _core() -> tuple[str, ...]:
    """Embedded datasets of 5,000 to 150,000 rows with at least two classes; nothing is downloaded."""
    return (
        "adult",
        "ai4i2020",
        "avila",
        "bank_marketing",
        "bike_sharing",
        "connect_4",
        "covid_testing",
        "default_credit",
        "diabetes130",
        "diamonds",
        "eeg_eye_state",
        "fars",
        "flights_2013_sample",
        "hotel_bookings",
        "htru2",
        "kc_house",
        "lending_club",
        "letter",
        "magic",
        "nass_cds",
        "nursery",
        "online_shoppers",
        "optdigits",
        "oulad",
        "pendigits",
        "polish_bankruptcy",
        "portal_rodents",
        "satimage",
        "shuttle",
        "telco_churn",
        "wine_quality",
    )


@register_suite("core-board")
def _core_board() -> tuple[str, ...]:
    """Datasets of the core board: the two-class datasets of core, without the three largest."""
    classes = {"avila", "connect_4", "diamonds", "fars", "letter", "nursery", "optdigits", "pendigits"}
    without = {
        *classes,
        "portal_rodents",
        "satimage",
        "shuttle",
        "diabetes130",
        "flights_2013_sample",
        "hotel_bookings",
    }
    return tuple(name for name in _core() if name not in without)


@register_suite("natural")
def _natural() -> tuple[str, ...]:
    """Datasets with natural bags, such as days, states, schools and clinics."""
    return (
        "bike_sharing",
        "cces_2016",
        "chem97",
        "compas",
        "covid_testing",
        "fars",
        "flights_2013",
        "hotel_bookings",
        "kc_house",
        "lending_club",
        "mpls_stops",
        "nass_cds",
        "online_shoppers",
        "oulad",
        "portal_rodents",
        "vehicle_fraud",
        "weather_aus",
    )


@register_suite("rare")
def _rare() -> tuple[str, ...]:
    """Datasets with two classes and 2 to 7 % positive rows."""
    return (
        "ai4i2020",
        "covid_testing",
        "credit_raw",
        "lending_club",
        "mammography",
        "nass_cds",
        "polish_bankruptcy",
        "vehicle_fraud",
    )


@register_suite("multiclass")
def _multiclass() -> tuple[str, ...]:
    """Datasets with more than two classes."""
    return (
        "avila",
        "connect_4",
        "diamonds",
        "fars",
        "letter",
        "nursery",
        "optdigits",
        "pendigits",
        "portal_rodents",
        "satimage",
        "shuttle",
    )
