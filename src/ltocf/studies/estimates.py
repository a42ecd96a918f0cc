"""How long a training takes on two cores, about: for the listing and for the time left.

Seconds per epoch of the paper's models on Gowalla and what ranking costs at the end, taken as
proportional to the number of training pairs; measured on one or two cores of an AMD EPYC, on
Yelp2018 and beside another training.
"""

from __future__ import annotations

from ltocf.config import RunConfig
from ltocf.studies.plan import GOWALLA_PAIRS, Plan, Setting

EPOCH = {
    "mf": 4.0, "hoprec": 5.0, "grmf": 5.0, "gcmc": 8.0, "pinsage": 18.0, "lrgccf": 30.0,
    "neumf": 25.0, "cmn": 18.0, "multvae": 68.0, "ngcf": 45.0,
}  # fmt: skip
RANKING = {"neumf": 120.0, "cmn": 240.0}
PROPAGATION, NEGATIVE = 0.1, 0.06  # seconds for a step with h(A) E; for a negative of each pair
STARTING, TESTING = 15.0, 3.0  # the graph and its singular vectors; ranking by dot product
MOST_EPOCHS, MOST_NEGATIVES = 30, 64  # where a config leaves them to the data
SMALL = 0.5  # seconds that a training of a few pairs takes


def training_seconds(config: RunConfig, n_pairs: int) -> float:
    """Of one training from its start to its test."""
    size = n_pairs / GOWALLA_PAIRS
    epochs, validates = config.train.epochs or MOST_EPOCHS, config.train.protocol != "fixed"
    each = EPOCH.get(config.model_name)
    if each is None:
        steps = max(n_pairs / config.train.batch_size_for(n_pairs), 1)
        each = steps * PROPAGATION + (config.loss.negatives or MOST_NEGATIVES) * NEGATIVE
    ranking = RANKING.get(config.model_name, TESTING)
    rankings = 1 + (epochs // config.train.evaluate_every if validates else 0)
    return SMALL + size * (STARTING + epochs * each + rankings * ranking)


def seconds_of(settings: list[Setting], plan: Plan) -> float:
    """Of all these trainings, each counted once."""
    distinct: dict[str, float] = {}
    n_pairs = len(plan.dataset.split.train)

    def count(setting: Setting) -> None:
        distinct[setting.digest(plan.fingerprint)] = training_seconds(setting.config, n_pairs)
        if setting.start_from:
            count(setting.start_from)

    for setting in settings:
        count(setting)
    return sum(distinct.values())


def duration(seconds: float) -> str:
    """'40 s', '12 min' or '3.5 h'."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
