import re
import sys
from html.parser import HTMLParser

import numpy as np
import pytest
from fitted_models import NASTY, fitted, with_everything
from sklearn.exceptions import NotFittedError

import coterie as ct
from coterie.io.files import MissingExtraError
from coterie.report import display_graph as drawing
from coterie.report.page import render, write_report
from coterie.report.text import short, smallest_error


class Reader(HTMLParser):
    """The text and the elements of a page, but for its scripts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.words, self.tags, self.links = [], [], []
        self.feed(page)
        self.text = re.sub(r"\s+", " ", " ".join(self.words))

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.links += [value for name, value in attrs if name in ("src", "href")]

    def handle_data(self, data):
        if not self.tags or self.tags[-1] not in ("script", "style"):
            self.words.append(data)


def own_part(page: str) -> str:
    """The page without the library that it carries."""
    library = re.search(r"<script>/\*\*\n\* plotly.*?</script>", page, flags=re.DOTALL)
    return page[: library.start()] + page[library.end() :]


@pytest.fixture(scope="module")
def page():
    return render(with_everything())


def test_everything_is_there(page):
    reader = Reader(page)
    for heading in (
        f"Networked linear regression of {NASTY}",
        "Is it any good?",
        "Does the network help?",
        "How close to the best possible it is, for certain",
        "What was fitted, and on what",
        "The network",
        "The nodes, one by one",
        "The models of the clusters",
        "The choice of λ",
        "Nodes that no label reaches",
        "Can these labels resolve these clusters?",
        "To do it again",
    ):
        assert heading in reader.text
    assert re.search(r"Within \de-\d+ of the best possible", reader.text)
    for fact in (
        "node 12, node 13",
        "NetworkedLinearRegressionCV",
        "random_state 0",
        "ab" * 32,
        "Seed 7",
        "Training error root mean squared error",
    ):
        assert fact in reader.text


def test_the_first_tile_has_the_held_out_error_in_the_unit_of_the_target():
    model = fitted(ct.NetworkedLinearRegressionCV, n_lams=4, cv=3, random_state=0)
    model.target_name_ = "rain"
    found = model.held_out_
    tiles = Reader(render(model)).text.partition("with labels.")[2]
    assert tiles.split()[0] == short(found.error, 3)
    assert "root mean squared error on held-out nodes, in units of rain" in tiles
    assert f"{short(found.score, 3)} R² on them" in tiles
    assert "Not known: no labels were held out." in Reader(render(fitted())).text


def test_what_counts_alike_how_sure_the_choice_is_and_who_wins():
    model = fitted(ct.NetworkedLinearRegressionCV, n_lams=4, cv=2, cv_repeats=2, weight_by="nodes")
    methods, errors = ["networked", "mixed model"], [[2.0, 3.0], [1.0, 2.1]]
    model.notes_ = {"baselines": {"methods": methods, "errors": errors, "over": "rows", "weights": [1, 3]}}
    text = Reader(render(model)).text
    assert "every node counts alike" in text
    assert "2 folds drawn 2 times" in text
    assert f"The {smallest_error(model.lam_choice_)} is at λ" in text
    assert "The network is beaten by mixed model, " in text
    assert "nodes differ in their level" in text


def test_a_criterion_that_chose_is_shown():
    model = fitted(ct.NetworkedLinearRegressionCV, n_lams=4, criterion="bic")
    text = Reader(render(model)).text
    assert "chosen by BIC, without folds" in text
    assert "BIC chose λ on all rows" in text
    assert f"{short(model.effective_parameters_, 4)} of 32 rows; AICc {short(model.aicc_, 6)}" in text
    assert [line.get_label() for line in ct.plot.lam_choice(model).lines[:2]] == ["AICc", "BIC"]


def test_criteria_stand_beside_the_errors_of_folds_where_they_are_asked_for():
    model = fitted(ct.NetworkedLinearRegressionCV, n_lams=4, cv=3, random_state=0)
    folds, lams = render(model), model.lam_choice_.lams
    text = Reader(render(model, criteria=True)).text
    expected = fitted(ct.NetworkedLinearRegressionCV, lams=lams, criterion="aicc").criterion_choice_
    for name, values in {"AICc": expected.aicc, "BIC": expected.bic}.items():
        assert f"{name} is smallest at λ = {short(lams[np.argmin(values)], 3)}" in text
    assert text.count("The choice of λ") == 1
    assert "chosen by cross-validation over nodes" in text
    assert f"The {smallest_error(model.lam_choice_)} is at λ" in text
    assert "AICc is smallest" not in Reader(folds).text
    assert render(model) == folds


def test_a_model_that_a_criterion_chose_shows_it_once():
    model = fitted(ct.NetworkedLinearRegressionCV, n_lams=4, criterion="bic")
    assert render(model, criteria=True) == render(model)


@pytest.mark.parametrize(
    ("model", "told"),
    [
        (lambda: fitted(), "NetworkedLinearRegression was given its λ"),
        (lambda: fitted(ct.NetworkedHuberRegressionCV, n_lams=3, cv=2, max_iter=50), "need a likelihood, which Huber"),
        (lambda: fitted(ct.NetworkedLinearRegressionCV, n_lams=3, cv=2, adaptive=True), "labels have made the graph"),
    ],
)
def test_criteria_that_a_model_does_not_have_are_refused(tmp_path, model, told):
    with pytest.raises(ValueError, match=told):
        write_report(model(), tmp_path / "page.html", criteria=True)
    assert not list(tmp_path.iterdir())


def test_criteria_need_the_rows_that_a_file_does_not_have(tmp_path):
    fitted(ct.NetworkedLinearRegressionCV, n_lams=3, cv=2).save(tmp_path / "model")
    with pytest.raises(ValueError, match="need the training rows"):
        render(ct.load(tmp_path / "model"), criteria=True)


def test_names_are_shown_and_never_obeyed(page):
    reader = Reader(page)
    assert reader.text.count(NASTY) >= 5
    assert not {"b", "i", "u"} & set(reader.tags)
    assert NASTY not in page
    assert [own_part(page).count(tag) for tag in ("<script", "</script>")] == [2, 2]


def test_the_page_refers_to_nothing_outside(page):
    assert Reader(page).links == ["data:,"]
    assert not re.search(r"https?:|wss?:|ftp:", own_part(page))


def test_a_plain_model_has_no_empty_sections():
    text = Reader(render(fitted())).text
    for heading in ("The choice of λ", "Does the network help?", "Can these labels resolve"):
        assert heading not in text
    assert "None: every node is connected to a label." in text
    assert text.count("not recorded") == 2


@pytest.mark.parametrize(
    "estimator", [ct.NetworkedLasso, ct.NetworkedLogisticRegression, ct.NetworkedLogisticRegressionCV]
)
@pytest.mark.parametrize("penalty", ["l1", "squared"])
def test_other_models(estimator, penalty):
    options = {"n_lams": 4, "cv": 2} if estimator.__name__.endswith("CV") else {}
    text = Reader(render(fitted(estimator, penalty=penalty, **options))).text
    assert ("log-loss" in text) == ("Logistic" in estimator.__name__)
    assert ("what the logarithm of the odds changes by" in text) == ("Logistic" in estimator.__name__)
    assert ("an average row, less the average of the target" in text) == ("Logistic" not in estimator.__name__)


def test_the_resolvability_of_the_learnt_clusters():
    model = fitted(lam=0.2)
    labelled = model.nodes_[model.n_labelled_ > 0]
    model.notes_ = {"resolvability": ct.resolvability(model.graph_, labelled, model.clusters_).to_dict()}
    assert "clusters are resolved" in Reader(render(model)).text


def test_one_node():
    X = np.random.default_rng(0).standard_normal((20, 1))
    assert "1 node" in Reader(render(ct.NetworkedLinearRegression().fit(X, X[:, 0]))).text


def test_not_converged_is_said_plainly():
    text = Reader(render(fitted(max_iter=1, lam=0.02, tol=1e-12))).text
    assert "Not converged" in text


def test_too_many_nodes_are_drawn_as_clusters_and_the_page_says_so(monkeypatch):
    monkeypatch.setattr(drawing, "MOST_NODES", 5)
    assert "each dot is a cluster" in Reader(render(fitted(lam=0.5))).text


def test_the_same_model_gives_the_same_page_also_from_a_file(tmp_path):
    model = with_everything()
    model.save(tmp_path / "model", model.notes_)
    for name in ("a.html", "b.html"):
        write_report(model, tmp_path / name)
    ct.write_report(ct.load(tmp_path / "model"), str(tmp_path / "c.html"))
    a, b, c = ((tmp_path / name).read_bytes() for name in ("a.html", "b.html", "c.html"))
    assert a == b == c


def test_a_model_must_be_fitted(tmp_path):
    with pytest.raises(NotFittedError):
        write_report(ct.NetworkedLasso(), tmp_path / "x.html")


@pytest.mark.parametrize("module", ["plotly.graph_objects", "jinja2"])
def test_a_missing_extra_is_named(monkeypatch, module):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=r"coterie\[report\]"):
        render(fitted())
