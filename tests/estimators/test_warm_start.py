import networkx as nx
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import coterie as ct
from coterie.estimators.new_nodes import warm_start
from problems import graphs, instance


@given(graph=graphs(), data=st.data())
def test_nodes_and_edges_keep_their_values(graph, data):
    old = graph.build()
    order = data.draw(st.permutations(range(old.n_nodes + 2)))
    gone = data.draw(st.sets(st.sampled_from(range(old.n_nodes))))
    new = nx.Graph()
    new.add_nodes_from(name for name in order if name not in gone)
    new.add_edges_from(e for e in old.edges.tolist() if not gone & set(e))
    if old.n_nodes not in gone and new.number_of_nodes() > 1:
        new.add_edge(old.n_nodes, old.n_nodes + 1)
    graph = ct.EmpiricalGraph.from_any(new)
    rng = np.random.default_rng(0)
    w, u = rng.standard_normal((old.n_nodes, 2)), rng.standard_normal((old.n_edges, 2))
    start = warm_start(solution(old, w, u), graph)
    for k, name in enumerate(graph.names):
        assert (start.w[k] == (w[name] if name < old.n_nodes else 0)).all()
    dual = {tuple(e): u_e for e, u_e in zip(old.edges.tolist(), u, strict=True)}
    for (i, j), u_e in zip(graph.edges.tolist(), start.u, strict=True):
        a, b = graph.names[i], graph.names[j]
        expected = dual[a, b] if (a, b) in dual else -dual[b, a] if (b, a) in dual else np.zeros(2)
        assert (u_e == expected).all()


def solution(graph, w, u):
    return ct.Solution(w, u, 0.0, 0.0, 0.0, True, "", ct.Status.OPTIMAL, 0, 0.0, (), np.arange(0), graph)


def test_the_same_graph_needs_nothing():
    done = ct.solve(instance())
    assert warm_start(done, done.graph) is done
