"""The models keep scikit-learn's own rules."""

from sklearn.utils.estimator_checks import parametrize_with_checks

import coterie as ct

PLAIN = (ct.NetworkedLinearRegression, ct.NetworkedLasso, ct.NetworkedLogisticRegression)
CHOOSING = (ct.NetworkedLinearRegressionCV, ct.NetworkedLassoCV, ct.NetworkedLogisticRegressionCV)


@parametrize_with_checks([*(model() for model in PLAIN), *(model(n_lams=3, cv=2) for model in CHOOSING)])
def test_it_passes_every_check(estimator, check):
    check(estimator)
