"""Datasets about nature: weather, animals, stars, particles, wine."""

from __future__ import annotations

from llpbench.core.registry import add_dataset

add_dataset(
    "htru2",
    """Pulsar candidates: is the candidate a pulsar?

    Mean, standard deviation, kurtosis and skewness of the pulse profile and of its curve over dispersion measures.
    """,
    target="is_pulsar",
    positive="1",
    sha256="a5fe90c37e9e40b787aef22bc6f9657d679c01df2187b24ee0ebec7aa97812db",
    licence="CC BY 4.0",
    reference="Lyon et al. 2016, UCI Machine Learning Repository",
)

add_dataset(
    "magic",
    """Telescope images: a gamma ray rather than a hadron?

    Parameters of an ellipse fitted to the image of a shower. Class g is a gamma ray.
    """,
    target="class",
    positive="g",
    sha256="52cb360cb5a4373c820b71a3c880cc994b92dfcdcbe3ce323e90eb29d6adaeb9",
    licence="CC BY 4.0",
    reference="Bock et al. 2004, UCI Machine Learning Repository; OpenML 1120",
)

add_dataset(
    "portal_rodents",
    """Trapped rodents: which of ten species is it?

    The ten most frequent species of the Portal Project, from the teaching extract in the R package ratdat. The day
    makes bags and is not a feature. Year, month and day are features.
    """,
    target="species",
    sha256="cf5fbda25be969b3dedde10b340bb63d916c1ea199bef947efe0c6363340d76d",
    key_only=("date",),
    natural_keys=("plot_id", "date", "year+month"),
    licence="CC0",
    reference="Ernest, Brown, Valone & White, Portal Project",
)

add_dataset(
    "satimage",
    """Landsat pixels: which of six kinds of ground?

    Four spectral bands of each pixel and its neighbours, 3 x 3 pixels.
    """,
    target="class",
    sha256="92eea34c5c5f3e53aa3c1361dc198e9dc277c6d282eb259c37c44810c5b0f8f5",
    licence="CC BY 4.0",
    reference="Srinivasan 1993, Statlog, UCI Machine Learning Repository; OpenML 182",
)

add_dataset(
    "weather_aus",
    """Weather stations: does it rain tomorrow?

    File `weatherAUS.csv` of the R package rattle, without tomorrow's amount of rain. The day makes bags and is not a
    feature. Read from `weather_aus.parquet` in the data directory.
    """,
    target="RainTomorrow",
    positive="Yes",
    sha256="8eaed4b7e8e9022f3c42a09a98b2cbc60650ab51a3d84d7fa80729c02e42cd43",
    key_only=("date",),
    natural_keys=("Location", "date"),
    licence="none stated",
    reference="Australian Bureau of Meteorology; Williams 2011, rattle",
)

add_dataset(
    "wine_quality",
    """Wines: is the quality at least 6 of 10?

    The colour is added as a feature. 1,177 rows are duplicates.
    """,
    target="good",
    positive="1",
    sha256="43aea3f0fa3873f191c79b2e4eb9619ca713804278d7892b2224127e4ee27ce1",
    licence="CC BY 4.0",
    reference="Cortez et al. 2009, UCI Machine Learning Repository; OpenML 287",
)
