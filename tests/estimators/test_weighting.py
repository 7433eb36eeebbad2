"""weight_by: what counts alike, rows or nodes."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from towns import PLAIN, empirical, labels_for, names, quick, rows

import coterie as ct
from coterie.io.moments import Moments
from coterie.io.rows import Columns


def uneven(seed: int = 0):
    """Rows of the towns: the first has all of its own, the others fewer and fewer."""
    X, y, nodes = rows(m=12, seed=seed)
    number = np.array([np.sum(nodes[:k] == nodes[k]) for k in range(len(nodes))])  # the how-manieth of its node
    keep = number < np.array([12, 9, 6, 4, 2, 1])[nodes]
    return X[keep], y[keep], nodes[keep]


@pytest.mark.parametrize("model", PLAIN)
@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 99))
def test_it_is_the_same_where_nodes_have_as_many_rows(model, seed):
    X, y, nodes = rows(seed=seed)
    y = labels_for(model, y)
    by_rows, by_nodes = (
        quick(model, empirical(), weight_by=way, tol=1e-9).fit(X, y, names(nodes)).coef_ for way in ("rows", "nodes")
    )
    assert by_rows == pytest.approx(by_nodes, abs=1e-3)


@pytest.mark.parametrize("model", PLAIN)
def test_rows_count_alike(model):
    """The loss of a node is its mean, m_i/m̄ times, which `ct.solve` states with sums and weights."""
    X, y, nodes = uneven()
    labels = labels_for(model, y)
    fitted = quick(model, empirical(), weight_by="rows", standardize=False, tol=1e-9).fit(X, labels, names(nodes))
    problem, m = fitted.problem_, np.bincount(nodes)
    design = np.column_stack([X, np.ones(len(X))])
    numbers = (labels == "wet").astype(float) if labels.dtype.kind == "U" else y
    w = np.random.default_rng(0).standard_normal((6, 3))
    row_errors = problem.loss.error(design, numbers, w[nodes])
    extra = {"ridge": lambda s: s * (w[:, :2] ** 2).sum(), "alpha": lambda s: s * np.abs(w[:, :2]).sum()}
    penalty = sum(term(getattr(fitted, name)) for name, term in extra.items() if hasattr(fitted, name))
    total = problem.f.value(w[problem.M]).sum()
    assert total == pytest.approx(row_errors.sum() / m.mean() + penalty)
    assert fitted.gap_ <= 1e-9


@pytest.mark.parametrize(("model", "way"), list(zip([*PLAIN, PLAIN[0]], ["rows", "nodes"] * 2, strict=True)))
def test_the_unit_of_sample_weights_does_not_matter(model, way):
    X, y, nodes = uneven()
    y = labels_for(model, y)
    s = np.random.default_rng(0).uniform(0.5, 2, len(y))
    one, two = (
        quick(model, empirical(), weight_by=way, tol=1e-9).fit(X, y, names(nodes), sample_weight=unit * s)
        for unit in (1.0, 1e6)
    )
    assert one.solution_.objective == pytest.approx(two.solution_.objective, rel=1e-8)


def test_a_weight_counts_like_as_many_rows():
    X, y, nodes = uneven()
    s = np.random.default_rng(1).integers(1, 4, len(y))
    twice = np.repeat(np.arange(len(y)), s)
    weighted = ct.NetworkedLinearRegression(empirical(), tol=1e-9).fit(X, y, names(nodes), sample_weight=s)
    repeated = ct.NetworkedLinearRegression(empirical(), tol=1e-9).fit(X[twice], y[twice], names(nodes[twice]))
    assert weighted.solution_.objective == pytest.approx(repeated.solution_.objective, rel=1e-7)


@pytest.mark.parametrize("model", PLAIN[:2])
def test_files_in_one_pass_count_rows_as_well(model):
    X, y, nodes = uneven()
    plain = quick(model, empirical(), tol=1e-9).fit(X, y, names(nodes))
    streamed = quick(model, empirical(), tol=1e-9)
    streamed.fit_moments(Moments.of(X, y, names(nodes)), Columns("town", ("humidity", "wind"), "rain"))
    assert streamed.row_weight_ == pytest.approx(plain.row_weight_)
    assert streamed.solution_.objective == pytest.approx(plain.solution_.objective, rel=1e-7)


def test_rows_of_a_node_that_joins_later_count_like_the_others():
    X, y, nodes = uneven()
    model = ct.NetworkedLinearRegression(empirical()).fit(X, y, names(nodes))
    assert model.row_weight_ == pytest.approx(6 / len(y))
    model.add_nodes({"new": ["a1"]}, X[:3], y[:3], ["new"] * 3)
    assert (model.problem_.data.weights == model.row_weight_).all()
    assert model.gap_ <= 1e-6


def test_a_model_says_which(tmp_path):
    X, y, nodes = uneven()
    for way in ("rows", "nodes"):
        fitted = ct.NetworkedLasso(empirical(), weight_by=way).fit(X, y, names(nodes))
        fitted.save(tmp_path / way)
        back = ct.load(tmp_path / way)
        assert back.weight_by == way
        assert back.standardize
        assert back.row_weight_ == fitted.row_weight_
        new = X[:2], y[:2]
        assert (back.weights_for(["a1", "b1"], *new).coef == fitted.weights_for(["a1", "b1"], *new).coef).all()
    with pytest.raises(ValueError, match="weight_by must be"):
        ct.NetworkedLasso(empirical(), weight_by="sites").fit(X, y, names(nodes))


@pytest.mark.parametrize(("reduction", "way"), [("mean", "nodes"), ("sum", "rows"), (None, "nodes")])
def test_files_of_the_first_schema_are_what_they_were(tmp_path, reduction, way):
    X, y, nodes = uneven()
    fitted = ct.NetworkedLinearRegressionCV(empirical(), n_lams=3, cv=2, weight_by="nodes", standardize=False)
    fitted.fit(X, y, names(nodes)).save(tmp_path / "m")
    file = tmp_path / "m" / "model.json"
    record = json.loads(file.read_text())
    record["schema"] = 1
    del record["row_weight"], record["parameters"]["weight_by"], record["parameters"]["cv_repeats"]
    record["parameters"] |= {} if reduction is None else {"reduction": reduction}
    file.write_text(json.dumps(record))
    back = ct.load(tmp_path / "m")
    assert (back.weight_by, back.standardize, back.row_weight_) == (way, False, 1.0)
    assert (back.predict(X, names(nodes)) == fitted.predict(X, names(nodes))).all()
    assert back.lam_choice_.weights.tolist() == [1, 1]
    assert (back.lam_choice_.errors == fitted.lam_choice_.errors).all()
    back.save(tmp_path / "again")
    assert ct.load(tmp_path / "again").weight_by == way
