"""ct.plot: the report's pictures on axes of one's own, or new ones."""

import pytest
from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from sklearn.exceptions import NotFittedError

import coterie as ct

EDGES = [("a", "b"), ("b", "c"), ("c", "d")]


@pytest.fixture(scope="module")
def model():
    X, y, towns = [[1.0], [2.0], [3.0], [5.0]] * 2, [1.0, 2.1, -3.0, -5.2, 1.1, 2.0, -3.1, -5.0], list("abcd") * 2
    return ct.NetworkedLinearRegressionCV(EDGES, n_lams=3, cv=2, random_state=0, engine="numpy").fit(X, y, towns)


PICTURES = [ct.plot.network, ct.plot.coefficients, ct.plot.convergence, ct.plot.gap, ct.plot.lam_choice]


@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.__name__)
def test_pictures_return_the_axes_that_they_are_drawn_on(model, picture):
    own = Figure().add_subplot()
    assert picture(model, ax=own) is own
    new = picture(model)
    assert isinstance(new, Axes)
    assert new.figure.number in pyplot.get_fignums()  # what notebooks show
    pyplot.close(new.figure)


def test_a_picture_of_a_solution(model):
    assert ct.plot.gap(model.solution_, ax=Figure().add_subplot()).get_yscale() == "log"


def test_what_cannot_be_drawn_makes_no_figure(model):
    before = pyplot.get_fignums()
    with pytest.raises(NotFittedError):
        ct.plot.network(ct.NetworkedLasso(EDGES))
    plain = ct.NetworkedLinearRegression(EDGES, engine="numpy").fit([[1.0], [2.0]], [1.0, 2.0], ["a", "b"])
    with pytest.raises(ValueError, match="was given its λ"):
        ct.plot.lam_choice(plain)
    assert pyplot.get_fignums() == before
