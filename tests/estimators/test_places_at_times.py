"""Places at times: two graphs in, one model per pair; folds, the next times, new places, files."""

from __future__ import annotations

from datetime import date

import numpy as np
import pandas as pd
import polars as pl
import pytest

import coterie as ct
from coterie.estimators.folds import as_it_was, folds_of, without
from coterie.estimators.space_time import carried

PLACES, TIMES = ["a", "b", "c", "d"], [1, 2, 3, 4, 5, 6]
SPACE = ct.EmpiricalGraph.from_edges([(0, 1), (1, 2), (2, 3)], ids=PLACES)
GRAPHS = (SPACE, ct.time_graph(TIMES))
BOTH = ["place", "time"]


def table(m: int = 3, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """m rows of every place at every time: slopes 1 in a and b, −1 in c and d, twice that from time 4 on."""
    rng = np.random.default_rng(seed)
    pairs = [(place, time) for place in PLACES for time in TIMES for _ in range(m)]
    frame = pd.DataFrame(pairs, columns=BOTH).assign(x=rng.standard_normal(len(pairs)))
    slope = np.where(frame["place"] < "c", 1.0, -1.0) * np.where(frame["time"] < 4, 1.0, 2.0)
    return frame, slope * frame["x"].to_numpy() + 0.1 * rng.standard_normal(len(pairs))


def fitted(kind=ct.NetworkedLinearRegression, **parameters):
    frame, y = table()
    return kind(GRAPHS, engine="numpy", **parameters).fit(frame, y, groups=BOTH), frame, y


def test_two_graphs_are_their_product() -> None:
    model, frame, y = fitted(lam=0.05, time_strength=0.5)
    product = ct.product_graph(*GRAPHS, strength=(1.0, 0.5))
    same = ct.NetworkedLinearRegression(product, lam=0.05, engine="numpy").fit(frame, y, groups=BOTH)
    np.testing.assert_array_equal(model.coef_, same.coef_)
    assert model.time_strength_ == 0.5
    assert model.nodes_[5] == ("b", 2)
    columns = model.coef_frame()
    assert columns.columns.tolist() == ["place", "time", "x", "intercept", "cluster"]
    assert columns.loc[5, ["place", "time"]].tolist() == ["b", 2]


def test_a_pair_of_edges_is_still_a_list_of_edges() -> None:
    model = ct.NetworkedLinearRegression((("a", "b"), ("b", "c")), lam=0.1)
    assert model.fit([[1.0], [2.0]], [1.0, 2.0], groups=["a", "c"]).graph_.n_nodes == 3


def test_a_graph_made_of_the_rows_is_not_one_of_two() -> None:
    frame, y = table()
    model = ct.NetworkedLinearRegression((ct.SimilarityGraph(k=2), GRAPHS[1]))
    with pytest.raises(TypeError, match=r"cannot be one of two graphs; .* ct.similarity_graph makes"):
        model.fit(frame, y, groups=BOTH)


@pytest.mark.parametrize("kind", ["list", "array", "pandas", "polars"])
def test_pairs_come_in_many_forms(kind) -> None:
    model, frame, y = fitted(lam=0.05)
    pairs = {
        "list": list(zip(frame["place"], frame["time"], strict=True)),
        "array": frame[BOTH].to_numpy(dtype=object),
        "pandas": frame[BOTH],
        "polars": pl.DataFrame({name: frame[name].tolist() for name in BOTH}),
    }[kind]
    again = ct.NetworkedLinearRegression(GRAPHS, lam=0.05, engine="numpy").fit(frame[["x"]].to_numpy(), y, groups=pairs)
    np.testing.assert_array_equal(again.coef_, model.coef_)


def test_the_last_slice_is_carried_forward_and_that_is_said() -> None:
    model, _, _ = fitted(lam=0.05)
    late = pd.DataFrame({"place": ["a", "d", "d"], "time": [7, 9, 6], "x": [1.0, 2.0, 3.0]})
    with pytest.warns(UserWarning, match=r"times after 6 are predicted with the models of that time: 7, 9") as said:
        predicted = model.predict(late)
    assert len(said) == 1
    np.testing.assert_array_equal(predicted, model.predict(late.assign(time=6)))


@pytest.mark.parametrize(
    ("place", "time", "says"),
    [("a", 0, "the time 0 is not among"), ("a", 2.5, "not after the last"), ("e", 3, "'e' is not among the 4 places")],
)
def test_what_cannot_be_predicted_is_named(place, time, says) -> None:
    model, _, _ = fitted(lam=0.05)
    with pytest.raises(ValueError, match=says):
        model.predict(pd.DataFrame({"place": [place], "time": [time], "x": [1.0]}))


@pytest.mark.parametrize(
    ("change", "groups", "says"),
    [
        ({"place": ["a", "e", "a"]}, BOTH, "row 1: 'e' is not among the 4 places, 'a', 'b', 'c', 'd'$"),
        ({"time": [1, 99, 3]}, BOTH, "row 1: the time 99 is not among the 6 times, 1, 2, 3, 4, 5, …$"),
        ({"time": ["1", "2", "3"]}, BOTH, "row 0: the time '1' is not among the 6 times"),
        ({"time": [None, 2, 3]}, BOTH, "row 0: the time nan is not among the 6 times"),
        ({}, BOTH[::-1], "row 0 has the time first, .1, 'a'."),
        ({}, ["place"], "nodes are pairs .place, time., such as .'a', 1.; row 0 has 'a'"),
        ({}, ["place", "week"], "X has no column 'week' with the nodes; its columns are .'place', 'time', 'x'."),
        ({}, [*BOTH, "x"], "X has no column of features"),
    ],
)
def test_rows_of_no_node_are_named(change, groups, says) -> None:
    frame = pd.DataFrame({"place": ["a", "b", "c"], "time": [1, 2, 3], "x": [1.0, 2.0, 3.0]}).assign(**change)
    with pytest.raises(ValueError, match=says):
        ct.NetworkedLinearRegression(GRAPHS, lam=0.1).fit(frame, [1.0, 2.0, 3.0], groups=groups)


def test_a_column_that_is_missing_later_is_named() -> None:
    model, frame, _ = fitted(lam=0.05)
    with pytest.raises(ValueError, match="X has no column 'time' with the nodes"):
        model.predict(frame.drop(columns="time"))


def test_dates_are_written_in_figures() -> None:
    times = [pd.Timestamp(2025, 1, day, tz="UTC") for day in (1, 2, 3)]
    model = ct.NetworkedLinearRegression((SPACE, ct.time_graph(times)), lam=0.1, engine="numpy")
    model.fit(np.arange(3.0)[:, None], np.arange(3.0), groups=[("a", time) for time in times])
    with pytest.warns(UserWarning, match=r"times after 2025-01-03 00:00:00\+00:00 .*: 2025-01-04 00:00:00\+00:00$"):
        model.predict([[1.0]], groups=[("a", times[-1] + pd.Timedelta(days=1))])
    with pytest.raises(
        ValueError, match=r"row 0: the time 2024-12-31 00:00:00\+00:00 is not among the 3 times, 2025-01-01"
    ):
        model.predict([[1.0]], groups=[("a", times[0] - pd.Timedelta(days=1))])


@pytest.mark.parametrize("over", ["times", "blocks"])
def test_what_comes_later_changes_no_earlier_fold(over) -> None:
    frame, y = table()
    later = np.where(frame["time"] == 6, y + 100, y)
    first, other = (
        ct.NetworkedLinearRegressionCV(
            GRAPHS,
            lams=[0.1, 1.0],
            time_strengths=[1.0],
            cv=3,
            over=over,
            standardize=False,
            random_state=0,
            engine="numpy",
        )
        .fit(frame, labels, groups=BOTH)
        .lam_choice_.errors
        for labels in (y, later)
    )
    np.testing.assert_array_equal(first[:, :2], other[:, :2])
    assert (np.abs(first[:, 2] - other[:, 2]) > 10).all()


def test_text_comes_after_text_as_times_do() -> None:
    space, times = ct.EmpiricalGraph.from_edges([(0, 1)], ids=["a", "b"]), ["2025-8", "2025-9"]
    pairs = [(place, time) for time in times for place in "ab"]
    model = ct.NetworkedLinearRegression((space, ct.time_graph(times)), lam=0.1, engine="numpy")
    model.fit(np.arange(4.0)[:, None], np.arange(4.0), groups=pairs)
    with pytest.warns(UserWarning, match="times after '2025-9'"):
        model.predict([[1.0]], groups=[("a", "2025-10")])
    for unknown in ("2025-1", "soon", 2026, float("nan"), None):
        with pytest.raises(ValueError, match="not after the last"):
            model.predict([[1.0]], groups=[("a", unknown)])


@pytest.mark.parametrize(
    ("time", "says"),
    [
        (ct.EmpiricalGraph.from_edges([(0, 1), (1, 2)], ids=[6, 5, 4]), "do not ascend: 6 comes before 5"),
        (pd.Series(TIMES), "the second graph is that of the times, as ct.time_graph makes it: cannot read"),
        (TIMES, "the second graph is that of the times"),
    ],
)
def test_what_is_no_graph_of_times_is_refused(time, says) -> None:
    """Folds over times that do not ascend would learn from what comes later."""
    frame, y = table()
    with pytest.raises((TypeError, ValueError), match=says):
        ct.NetworkedLinearRegression((SPACE, time), lam=0.1).fit(frame, y, groups=BOTH)


def test_two_graphs_may_be_a_list() -> None:
    model, frame, y = fitted(lam=0.05)
    again = ct.NetworkedLinearRegression(list(GRAPHS), lam=0.05, engine="numpy").fit(frame, y, groups=BOTH)
    np.testing.assert_array_equal(again.coef_, model.coef_)


@pytest.mark.parametrize("over", ["times", "blocks"])
def test_no_time_is_held_out_as_the_next_where_times_go_round(over) -> None:
    frame, y = table()
    model = ct.NetworkedLinearRegressionCV((SPACE, ct.time_graph(TIMES, period=6)), over=over, cv=2, n_lams=2)
    with pytest.raises(ValueError, match=f'over="{over}": times go round'):
        model.fit(frame, y, groups=BOTH)


@pytest.mark.parametrize("over", ["times", "blocks"])
def test_few_times_are_too_few_to_hold_out(over) -> None:
    frame, y = table()
    early = frame["time"] < 3
    model = ct.NetworkedLinearRegressionCV(GRAPHS, over=over, cv=2, n_lams=2)
    with pytest.raises(ValueError, match="folds over times need labels at 3 times or more"):
        model.fit(frame[early], y[early], groups=BOTH)


def test_at_one_time_no_strength_is_chosen() -> None:
    frame, y = table()
    first = frame["time"] == 1
    model = ct.NetworkedLinearRegressionCV((SPACE, ct.time_graph([1])), cv=2, n_lams=3, random_state=0, engine="numpy")
    model.fit(frame[first], y[first], groups=BOTH)
    assert model.time_strength_ == 1.0
    assert len(model.cv_results_["lam"]) == 3


def test_nothing_comes_after_times_that_go_round() -> None:
    frame, y = table()
    graphs = (SPACE, ct.time_graph(TIMES, period=6))
    model = ct.NetworkedLinearRegression(graphs, lam=0.05, engine="numpy").fit(frame, y, groups=BOTH)
    with pytest.raises(ValueError, match="times go round"):
        model.predict(pd.DataFrame({"place": ["a"], "time": [7], "x": [1.0]}))


def test_a_new_place_has_the_models_of_its_neighbours_at_each_time() -> None:
    model, _, _ = fitted(lam=0.05)
    slices = model.coef_.reshape(len(TIMES), len(PLACES))
    found = model.weights_for({"a": 1.0, "d": 3.0})
    np.testing.assert_allclose(found.coef[:, 0], slices[:, 3])  # the weighted median
    assert found.intercept.shape == (len(TIMES),)
    with pytest.raises(ValueError, match="add_nodes takes them"):
        model.weights_for(["a"], [[1.0]], [1.0])
    with pytest.raises(ValueError, match="'z' is not among the 4 places"):
        model.weights_for(["a", "z"])
    with pytest.raises(ValueError, match="a place without neighbours"):
        model.weights_for([])
    assert model.weights_for([("a", 1)]).coef.shape == (1,)


def test_added_places_are_there_at_all_times() -> None:
    model, frame, y = fitted(lam=0.05)
    new = pd.DataFrame({"place": "e", "time": [1, 1, 6, 6], "x": [1.0, -1.0, 1.0, -1.0]})
    model.add_nodes({"e": ["d"]}, new, [-1.0, 1.0, -2.0, 2.0], groups=BOTH)
    assert model.graph_.n_nodes == 30
    assert model.n_labelled_.reshape(6, 5)[:, -1].tolist() == [2, 0, 0, 0, 0, 2]
    space = ct.EmpiricalGraph.from_edges([(0, 1), (1, 2), (2, 3), (3, 4)], ids=[*PLACES, "e"])
    rows, labels = pd.concat([frame, new]), np.concatenate([y, [-1.0, 1.0, -2.0, 2.0]])
    whole = ct.NetworkedLinearRegression((space, GRAPHS[1]), lam=0.05, engine="numpy").fit(rows, labels, groups=BOTH)
    at_new = np.arange(4, 30, 5)
    np.testing.assert_allclose(model.coef_[at_new], whole.coef_[at_new], atol=0.1)  # in units of the first fit
    with pytest.raises(ValueError, match="which is not in the graph"):
        model.add_nodes({"f": ["nowhere"]})


class TestFolds:
    def folds(self, over, cv=3, **options):
        model, frame, _ = fitted(lam=0.05)
        problem = model.problem_
        order = np.argsort(problem.graph.numbers(list(zip(frame["place"], frame["time"], strict=True))), kind="stable")
        found, held = folds_of(problem.data, cv, over, order, 0, n_places=4, **options)
        assert held == over
        return found, problem, problem.data.nodes % 4, problem.data.nodes // 4

    def test_places_are_held_out_at_all_times(self) -> None:
        folds, _, place, _ = self.folds("places")
        assert sum(fold.test for fold in folds).tolist() == [1] * len(place)
        for fold in folds:
            assert not set(place[fold.train]) & set(place[fold.test])
            assert fold.known is None

    def test_times_are_predicted_from_the_past_alone(self) -> None:
        folds, _, _, time = self.folds("times")
        assert [sorted(set(time[fold.test])) for fold in folds] == [[3], [4], [5]]
        for fold in folds:
            assert time[fold.train].max() < time[fold.test].min()

    def test_blocks_share_neither_places_nor_times(self) -> None:
        folds, _, place, time = self.folds("blocks", repeats=2)
        assert len(folds) == 6
        for fold in folds:
            assert not set(place[fold.train]) & set(place[fold.test])
            assert time[fold.train].max() < time[fold.test].min()

    @pytest.mark.parametrize("over", ["times", "blocks"])
    def test_later_labels_change_nothing(self, over) -> None:
        folds, problem, _, _ = self.folds(over)
        past = as_it_was(without(problem, folds[0]), folds[0])
        assert past.graph.n_nodes == folds[0].known == past.data.n_nodes
        assert past.graph.names[-1] == ("d", 3)
        w = carried(np.arange(12.0)[:, None], problem.graph)
        assert w[:, 0].tolist() == [*range(12), *([8, 9, 10, 11] * 3)]

    @pytest.mark.parametrize(("over", "cv"), [("times", 6), ("places", 5), ("blocks", 1)])
    def test_too_many_folds(self, over, cv) -> None:
        with pytest.raises(ValueError, match=f"cv={cv} folds over"):
            self.folds(over, cv)

    def test_folds_over_times_are_not_drawn(self) -> None:
        with pytest.raises(ValueError, match="not drawn"):
            self.folds("times", repeats=2)

    def test_only_space_time_has_places(self) -> None:
        data = ct.LocalDatasets.from_rows([[1.0]] * 4, [1.0] * 4, [0, 1, 2, 3])
        with pytest.raises(ValueError, match="give graph="):
            folds_of(data, 2, "places", np.arange(4), 0)


@pytest.mark.parametrize("over", ["rows", "places", "times", "blocks"])
def test_both_strengths_are_chosen(over, tmp_path) -> None:
    model, frame, y = fitted(
        ct.NetworkedLinearRegressionCV,
        lams=[1.0, 0.1, 0.01],
        time_strengths=[0.5, 2.0],
        cv=2,
        over=over,
        random_state=0,
    )
    results = model.cv_results_
    assert results["lam"].tolist() == [1.0, 1.0, 0.1, 0.1, 0.01, 0.01]
    assert sorted(results["time_strength"].tolist()) == [0.5] * 3 + [2.0] * 3
    best = int(np.argmin(results["mean_error"]))
    assert (model.lam_, model.time_strength_) == (results["lam"][best], results["time_strength"][best])
    assert model.held_out_.over == over
    plain = ct.NetworkedLinearRegression(GRAPHS, lam=model.lam_, time_strength=model.time_strength_, engine="numpy")
    np.testing.assert_allclose(model.coef_, plain.fit(frame, y, groups=BOTH).coef_, atol=1e-2)
    for kappa, curve in model.lam_choice_.curves():
        alone = ct.NetworkedLinearRegressionCV(
            GRAPHS, lams=[1.0, 0.1, 0.01], time_strengths=[kappa], cv=2, over=over, random_state=0, engine="numpy"
        ).fit(frame, y, groups=BOTH)
        np.testing.assert_allclose(curve.mean, alone.lam_choice_.mean)
    model.save(tmp_path / "model")
    back = ct.load(tmp_path / "model")
    assert back.time_strength_ == model.time_strength_
    for name, column in results.items():
        np.testing.assert_array_equal(back.cv_results_[name], column)


def test_strengths_are_relative_to_the_weights_of_edges() -> None:
    frame, y = table()
    heavy = ct.EmpiricalGraph.from_edges(SPACE.edges, 50 * SPACE.weights, ids=PLACES)
    options = {"n_lams": 3, "cv": 2, "random_state": 0, "engine": "numpy", "tol": 1e-3}
    one, other = (
        ct.NetworkedLinearRegressionCV((space, GRAPHS[1]), **options).fit(frame, y, groups=BOTH)
        for space in (SPACE, heavy)
    )
    assert other.time_strength_ == pytest.approx(50 * one.time_strength_)
    assert other.lam_ == pytest.approx(one.lam_ / 50)


def test_baselines_are_given_the_same_past() -> None:
    frame, y = table()
    model = ct.NetworkedLinearRegressionCV(GRAPHS, lams=[0.1, 0.01], time_strengths=[0.5, 2.0], cv=2, engine="numpy")
    found = ct.compare_baselines(model, frame, y, BOTH, cv=2, over="times")
    assert found.over == "times"
    local = dict(zip(found.methods, found.errors, strict=True))["local only"]
    assert np.isfinite(found.errors).all()
    last = frame["time"] == 6
    at_5 = frame["time"] == 5
    by_hand = []
    for place in PLACES:  # the second of two folds knows the times 1 to 4 and tests 5 and 6
        here = frame["place"] == place
        w = np.polyfit(frame["x"][here & (frame["time"] == 4)], y[here & (frame["time"] == 4)], 1)
        by_hand.append((np.polyval(w, frame["x"][here & (last | at_5)]) - y[here & (last | at_5)]) ** 2)
    assert local[1] == pytest.approx(np.sqrt(np.mean(by_hand)), rel=1e-6)


def test_one_fold_chooses_inside() -> None:
    frame, y = table()
    model = ct.NetworkedLinearRegressionCV(GRAPHS, lams=[0.1, 0.01], time_strengths=[0.5, 2.0], engine="numpy")
    half = [(np.flatnonzero(frame["time"] < 4), np.flatnonzero(frame["time"] >= 4))]
    assert ct.compare_baselines(model, frame, y, BOTH, cv=half).errors.shape[1] == 1


@pytest.mark.parametrize(
    "times",
    [
        [date(2025, month, 1) for month in (1, 2, 3)],
        pd.to_datetime(["2025-01-01", "2025-02-01", "2025-03-01"]),
        np.array(["2025-01", "2025-02", "2025-03"], dtype="datetime64[M]"),
        ["2025-01", "2025-02", "2025-03"],
    ],
)
def test_dates_and_files(times, tmp_path) -> None:
    graph = (SPACE, ct.time_graph(times))
    pairs = [(place, time) for time in times for place in PLACES]
    X, y = np.arange(12.0)[:, None], np.arange(12.0) ** 2
    model = ct.NetworkedLinearRegression(graph, lam=0.1, time_strength=2.0, engine="numpy").fit(X, y, groups=pairs)
    model.save(tmp_path / "model")
    back = ct.load(tmp_path / "model")
    np.testing.assert_array_equal(back.predict(X, groups=pairs), model.predict(X, groups=pairs))
    np.testing.assert_array_equal(back.graph_.weights, model.graph_.weights)
    back.fit(X, y, groups=pairs)
    np.testing.assert_array_equal(back.coef_, model.coef_)
    back.save(tmp_path / "again")
    assert (tmp_path / "again" / "model.json").exists()


def test_bad_strengths_are_refused() -> None:
    frame, y = table()
    with pytest.raises(ValueError, match="strength in time"):
        ct.NetworkedLinearRegression(GRAPHS, time_strength=0.0).fit(frame, y, groups=BOTH)
    with pytest.raises(ValueError, match="strength in time"):
        ct.NetworkedLinearRegressionCV(GRAPHS, time_strengths=[1.0, -1.0]).fit(frame, y, groups=BOTH)
    with pytest.raises(ValueError, match="time_strengths is empty"):
        ct.NetworkedLinearRegressionCV(GRAPHS, time_strengths=[]).fit(frame, y, groups=BOTH)


def test_classes_have_times_too() -> None:
    frame, y = table(m=6)
    model = ct.NetworkedLogisticRegressionCV(
        GRAPHS, lams=[0.1, 0.01], time_strengths=[1.0], cv=2, over="times", engine="numpy", tol=1e-3
    ).fit(frame, np.where(y > 0, "up", "down"), groups=BOTH)
    assert model.held_out_.score > 0.6


def test_a_new_place_has_the_refitted_models_of_its_neighbours() -> None:
    frame, y = table()
    model = ct.NetworkedLinearRegression(GRAPHS, lam=0.3, refit="clusters").fit(frame, y, groups=BOTH)
    at = [k for k, (place, _) in enumerate(model.graph_.names) if place == "a"]
    np.testing.assert_allclose(model.weights_for(["a"]).coef, model.coef_[at])


def test_midnights_are_dates_and_lists_are_pairs() -> None:
    frame, y = table()
    days = {k: date(2025, k, 1) for k in TIMES}
    dated = frame.assign(time=frame["time"].map(days))
    model = ct.NetworkedLinearRegression((SPACE, ct.time_graph(list(days.values()))), lam=0.1)
    model.fit(dated, y, groups=BOTH)
    given = [["a", pd.Timestamp("2025-02-01")], ["b", date(2025, 3, 1)]]
    np.testing.assert_array_equal(
        model.predict(frame[["x"]][:2], groups=given),
        model.predict(frame[["x"]][:2], groups=[("a", date(2025, 2, 1)), ("b", date(2025, 3, 1))]),
    )


def test_a_new_place_has_strengths_of_columns_too() -> None:
    frame, y = table()
    model = ct.NetworkedLinearRegression(GRAPHS, lam=0.3, column_strength={"x": 0.0}).fit(frame, y, groups=BOTH)
    at_once = model.weights_for(["a", "b", "d"])
    for k, when in enumerate(TIMES):
        one = model.weights_for([("a", when), ("b", when), ("d", when)])
        np.testing.assert_allclose(at_once.coef[k], one.coef)
