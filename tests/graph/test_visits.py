import numpy as np

from ltocf.graph.visits import visits
from tests.models.toys import adjacency, random_graph


def test_many_walks_visit_nodes_in_proportion_to_powers_of_the_transition_matrix():
    graph = random_graph()
    B = adjacency(graph).numpy()
    step = B / np.maximum(B.sum(1, keepdims=True), 1)
    expected = step + step @ step
    np.fill_diagonal(expected, 0)
    expected /= np.maximum(expected.sum(1, keepdims=True), 1e-12)
    found = visits(graph, walks=20_000, length=2, keep=graph.n_nodes, seed=1).toarray()
    np.testing.assert_allclose(found, expected, atol=0.02)


def test_only_the_most_visited_are_kept_and_shares_add_up_to_one():
    graph = random_graph()
    every = visits(graph, walks=200, length=3, keep=graph.n_nodes, seed=1).toarray()
    few = visits(graph, walks=200, length=3, keep=4, seed=1).toarray()
    linked = np.flatnonzero(graph.degrees)
    np.testing.assert_allclose(few[linked].sum(1), 1, rtol=1e-5)
    for row in linked:
        kept = np.flatnonzero(few[row])
        assert len(kept) <= 4
        assert every[row][kept].min() >= np.sort(every[row])[-4]


def test_the_seed_decides():
    graph = random_graph()
    first, again, other = (visits(graph, 5, 3, 4, seed).toarray() for seed in (1, 1, 2))
    assert (first == again).all() and (first != other).any()
