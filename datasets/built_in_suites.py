"""Built-in suites of datasets: `--datasets suite:core` (`llpbench list suites`).

`embedded` and `core` follow rules. `embedded` contains every redistributable dataset with labels that is embedded in
the package and has 5,000 to 150,000 rows, and a seeded sample of larger ones; `core` contains those with two classes
and at most 50,000 rows. Results of methods had no influence. The other suites follow from the declarations of datasets.
They also contain datasets that may not be redistributed: `--data-dir` finds these.
"""

from __future__ import annotations

from llpbench.core.registry import register_suite


@register_suite("paper")
def _paper() -> tuple[str, ...]:
    """The seven public datasets of the TabLLP-BDC paper."""
    return ("adult", "bank_marketing", "california", "credit", "electricity", "road_safety", "movielens_1m")


@register_suite("core")
def _core() -> tuple[str, ...]:
    """Two-class datasets of `embedded` with at most 50,000 rows: those of the core boards."""
    return (
        "adult",
        "ai4i2020",
        "bank_marketing",
        "bike_sharing",
        "covid_testing",
        "default_credit",
        "eeg_eye_state",
        "htru2",
        "kc_house",
        "lending_club",
        "magic",
        "nass_cds",
        "online_shoppers",
        "oulad",
        "polish_bankruptcy",
        "telco_churn",
        "wine_quality",
    )


@register_suite("embedded")
def _embedded() -> tuple[str, ...]:
    """Included datasets of 5,000 to 150,000 rows with at least two classes; nothing is downloaded."""
    return (
        *_core(),
        "avila",
        "connect_4",
        "diabetes130",
        "diamonds",
        "fars",
        "flights_2013_sample",
        "hotel_bookings",
        "letter",
        "nursery",
        "optdigits",
        "pendigits",
        "portal_rodents",
        "satimage",
        "shuttle",
    )


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
