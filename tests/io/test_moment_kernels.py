import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from coterie.io.moment_kernels import add_rows, number_ids

WHOLE = st.integers(-(2**63), 2**63 - 1)


@given(st.lists(st.sampled_from([0, 1, -1, 8, 16, 2**62, -(2**63)]) | WHOLE, max_size=30))
def test_ids_are_numbered_in_the_order_in_which_they_turn_up(ids):
    table, numbers = np.full((64, 2), -1), np.empty(len(ids), dtype=np.int64)
    half = len(ids) // 2
    known = number_ids(np.array(ids[:half], dtype=np.int64), table, 0, numbers[:half])
    known = number_ids(np.array(ids[half:], dtype=np.int64), table, known, numbers[half:])
    order = list(dict.fromkeys(ids))
    assert known == len(order)
    assert [order[k] for k in numbers] == ids


def test_rows_are_added_to_the_nodes_of_one_part_only():
    rng = np.random.default_rng(0)
    nodes, Z = rng.integers(0, 6, 200), rng.standard_normal((3, 200)) + 1e6
    m, origin, mean, C = np.zeros(6, dtype=np.int64), np.zeros((6, 3)), np.zeros((6, 3)), np.zeros((6, 6))
    add_rows(1, 2, nodes, Z, m, origin, mean, C)
    np.testing.assert_array_equal(m, np.bincount(nodes) * (np.arange(6) % 2))
    for i in (1, 3, 5):
        of = Z[:, nodes == i]
        np.testing.assert_allclose(origin[i] + mean[i], of.mean(axis=1))
        np.testing.assert_allclose(C[i], (np.cov(of, bias=True) * m[i])[np.tril_indices(3)], rtol=1e-8, atol=1e-8)
    assert not C[::2].any()
