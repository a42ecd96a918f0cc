from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ltocf.data.dataset import Dataset
from ltocf.data.interactions import Interactions
from ltocf.data.sources.town import make_town
from ltocf.runs.settings import make_config
from ltocf.studies.estimates import duration, seconds_of, training_seconds
from ltocf.studies.outcomes import mean_spread
from ltocf.studies.plan import EQUAL_SCALE, FULL_EPOCHS, GOWALLA_PAIRS, Arm, Plan, Setting
from ltocf.studies.reproduce import STUDIES, all_settings
from ltocf.studies.runner import climb


@pytest.fixture
def plan(hamlet: Dataset) -> Plan:
    return Plan(hamlet)


def test_a_digest_distinguishes_trainings_but_not_labels_or_names_of_the_data(plan):
    setting = Setting("one", plan.config())
    same = Setting("other", plan.config().model_copy(update={"dataset": "elsewhere"}))
    assert same.digest("data") == setting.digest("data")
    others = [
        Setting("one", plan.config(seed=1)).digest("data"),
        Setting("one", plan.config("ltocf", "end_time=5.0")).digest("data"),
        Setting("one", plan.config(), start_from=setting).digest("data"),
        setting.digest("other data"),
    ]
    assert len({setting.digest("data"), *others}) == 5


def test_a_fingerprint_depends_on_every_part_of_the_split(hamlet):
    other = make_town(people=120, places=90, seed=2).dataset
    mixed = replace(hamlet, split=replace(hamlet.split, test=other.split.test))
    assert len({Plan(data).fingerprint for data in (hamlet, other, mixed)}) == 3


ISOLATING = ("curves", "solvers", "connections", "T", "K", "times")


def test_what_studies_share_is_trained_once(plan):
    digests = {
        name: {setting.digest(plan.fingerprint) for setting in all_settings(study, plan)}
        for name, study in STUDIES.items()
    }
    base = plan.trial(Arm(""), plan.rates(Arm(""))[0]).digest(plan.fingerprint)
    for name in ISOLATING:
        assert base in digests[name], name


@pytest.mark.parametrize("name", STUDIES)
def test_labels_are_one_an_arm_and_one_a_setting(plan, name):
    study = STUDIES[name]
    compared = [*study.arms(plan), *study.settings(plan)]
    assert len({one.label for one in compared}) == len(compared)  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ISOLATING)
def test_arms_differ_in_one_thing(plan, name):
    """All responses have one size at eigenvalue 1, all trainings equally many steps, and every arm
    is tried with the same learning rates."""
    arms = STUDIES[name].arms(plan)
    assert len({tuple(plan.rates(arm)) for arm in arms}) == 1
    for arm in arms:
        config = plan.trial(arm, 0.01).config
        assert config.model_options["scale"] == EQUAL_SCALE
        assert config.model_options["popularity"] == 0  # no term that is the same for all of them
        assert config.train == plan.trial(arms[0], 0.01).config.train
        learns = config.model_options.get("learn_times")
        assert learns is not True or config.model_options["time_updates"] == "joint"


def test_held_out_times_are_learned_from_training_pairs_alone(plan):
    """What the arms are judged by, validation and test, is in no pair that the times learn from."""
    nested, whole = plan.nested_dataset.split, plan.dataset.split
    key = lambda pairs: set(zip(pairs.users.tolist(), pairs.items.tolist(), strict=True))  # noqa: E731
    assert key(nested.train) | key(nested.test) == key(whole.train)
    assert not key(nested.train) & key(nested.test)
    assert not key(nested.train) & key(whole.test)


def test_larger_data_train_for_fewer_epochs_and_smaller_ones_for_no_more(hamlet):
    pairs = hamlet.split.train
    twice = replace(hamlet, split=replace(hamlet.split, train=_of_size(pairs, 2 * GOWALLA_PAIRS)))
    assert Plan(twice, budget="full").config().train.epochs == FULL_EPOCHS / 2
    assert Plan(hamlet, budget="full").config().train.epochs == FULL_EPOCHS
    assert Plan(twice, budget="full").epochs(1) == "epochs=1"


def _of_size(pairs: Interactions, n: int) -> Interactions:
    """So many pairs of one user and one item: a plan looks at their number only."""
    rows = np.zeros(n, dtype=np.int32)
    return replace(pairs, users=rows, items=rows, timestamps=None)


def test_a_plan_takes_the_seeds_and_settings_it_is_given(hamlet):
    plan = Plan(hamlet, seeds=4, overrides=("epochs=7",))
    settings = all_settings(STUDIES["times"], plan)
    arms, rates = 3, 2
    assert len(settings) == arms * (rates + 3) + 1  # and the search for the times of one
    assert {setting.config.train.epochs for setting in settings} == {7}
    assert {setting.config.seed for setting in settings} == {0, 1, 2, 3}


def test_validation_is_the_latest_pairs_where_there_is_an_order(hamlet):
    split = hamlet.split
    unordered = replace(hamlet, split=replace(split, train=replace(split.train, timestamps=None)))
    assert Plan(hamlet).config().train.validation_cut == "latest"
    assert Plan(unordered).config().train.validation_cut == "random"


def test_the_full_budget_takes_the_configs_of_the_data_set(hamlet):
    yelp = replace(hamlet, name="yelp2018")
    assert Plan(yelp, "yelp2018", "full").row("multvae").train.epochs == 8  # Gowalla: 14


def test_a_spread_needs_two_values():
    assert mean_spread([3.0]) == (3.0, 0.0)
    assert mean_spread([1.0, 3.0]) == pytest.approx((2.0, 2**0.5))


def test_estimates_grow_with_epochs_and_pairs_and_count_a_shared_training_once(plan):
    short, long = (make_config({}, [f"epochs={n}"]) for n in (3, 30))
    assert training_seconds(short, 10**6) < training_seconds(long, 10**6)
    assert training_seconds(short, 10**5) < training_seconds(short, 10**6)
    mf = Setting("a", plan.row("mf"))
    both = [mf, Setting("b", plan.row("mf")), Setting("c", plan.row("pinsage"), start_from=mf)]
    assert seconds_of(both, plan) == pytest.approx(
        seconds_of([mf], plan) + seconds_of([Setting("c", plan.row("pinsage"))], plan)
    )


@pytest.mark.parametrize(
    ("seconds", "text"), [(42.4, "42 s"), (600, "10 min"), (9000, "2.5 h"), (0, "0 s")]
)
def test_a_duration_is_written_in_a_unit_of_its_size(seconds, text):
    assert duration(seconds) == text


def test_settings_go_to_the_models_that_have_them(hamlet):
    plan = Plan(hamlet, overrides=("dim=4", "solver=euler", "epochs=1"))
    assert plan.config().model_options["solver"] == "euler"
    assert plan.config("lightgcn").model_options == {
        "dim": 4, "start": "spectral", "scale": EQUAL_SCALE, "popularity": 0
    }  # fmt: skip
    assert plan.row("mf").model_options["dim"] == 4
    assert "dim" not in plan.row("multvae").model_options
    assert plan.row("multvae").train.epochs == 1


@pytest.mark.parametrize(
    ("recalls", "chosen", "tried"),
    [
        ([1, 2, 3, 2, 1, 0], 2, 3),  # the first is best: one to either side of it
        ([0, 1, 2, 3, 4, 2], 4, 4),
        ([4, 3, 2, 1, 0, 0], 0, 4),
        ([0, 0, 1, 2, 3, 4], 5, 4),
    ],
)
def test_a_sweep_goes_on_until_it_falls_or_ends(recalls, chosen, tried):
    asked = set()

    def value(place):
        asked.add(place)
        return recalls[place]

    assert climb(value, 2, len(recalls)) == chosen
    assert len(asked) == tried
