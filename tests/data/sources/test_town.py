import numpy as np

from ltocf.data.sources.town import make_town
from ltocf.data.sources.town_words import KINDS, NEIGHBOURHOODS


def test_a_town_is_the_same_for_a_seed_and_another_for_another():
    first, again, other = (make_town(200, 150, seed).dataset for seed in (1, 1, 2))
    assert first.split.train.fingerprint == again.split.train.fingerprint
    assert first.split.train.user_ids == again.split.train.user_ids
    assert first.split.train.fingerprint != other.split.train.fingerprint


def test_everybody_and_every_place_has_a_name_of_their_own():
    town = make_town(3000, 1500)
    names = town.dataset.item_names
    assert names is not None
    assert names["name"].n_unique() == 1500
    assert town.dataset.split.train.user_ids.ids.n_unique() == 3000
    assert set(names["kind"]) == set(KINDS)
    assert set(names["neighbourhood"]) == set(NEIGHBOURHOODS)


def test_popularity_has_a_long_tail():
    degrees = np.sort(make_town().dataset.split.train.item_degrees)[::-1]
    assert degrees[0] > 10 * np.median(degrees)
    assert degrees[-1] >= 1


def test_people_go_to_places_of_their_planted_tastes():
    town = make_town()
    train = town.dataset.split.train
    favourite = town.person_tastes[train.users, 0] == town.place_kinds[train.items]
    at_home = town.person_homes[train.users] == town.place_homes[train.items]
    assert favourite.mean() > 4 / len(KINDS)
    assert at_home.mean() > 2 / len(NEIGHBOURHOODS)
    assert town.dataset.item_names is not None
    kinds = np.array(list(KINDS))[town.place_kinds]
    assert town.dataset.item_names["kind"].to_list() == kinds.tolist()


def test_a_tiny_town_is_a_town():
    assert make_town(people=20, places=12).dataset.counts["users"] == 20
