"""ψ of rows on a device: the formulas of `coterie.problem.losses`, for families with a number (`kernels/kinds.py`).

A device's exp, expm1, log and log1p are within 2 units in the last place, less than what is charged for them.
"""

from __future__ import annotations

import torch

from coterie.engines.gpu.exact import EPS, Tensor
from coterie.kernels.kinds import HUBER, LOGISTIC, POISSON, SQUARED, SQUARED_HINGE
from coterie.problem.losses.poisson import HIGHEST, LARGE, STEEP
from coterie.problem.losses.psi import INSIDE, Psi

xlogy, xlog1py = torch.special.xlogy, torch.special.xlog1py


class Family:
    """ψ(e) = e² of the residual e, and what others have in common with it."""

    def __init__(self, given: Psi) -> None:
        self.given, self.c = given, given.parameter

    def direction(self, y: Tensor) -> Tensor:
        return torch.full_like(y, -1.0)

    def shift(self, y: Tensor) -> Tensor:
        return y

    def argument(self, margin: Tensor, y: Tensor) -> Tensor:
        """The e of a margin."""
        return self.direction(y) * margin + self.shift(y)

    def psi(self, e: Tensor, y: Tensor) -> Tensor:
        return e * e

    def slope(self, e: Tensor, y: Tensor) -> Tensor:
        return 2 * e

    def bend(self, e: Tensor, y: Tensor) -> Tensor:
        return torch.full_like(e, 2.0)

    def working_bend(self, e: Tensor, y: Tensor) -> Tensor:
        return self.bend(e, y)

    def most_bend(self, e: Tensor, y: Tensor, way: Tensor) -> Tensor:
        return self.bend(e, y)

    def conjugate(self, t: Tensor, y: Tensor) -> Tensor:
        return t * (t / 4)

    def steepest(self, t: Tensor, y: Tensor, way: Tensor) -> Tensor:
        return (t.abs() + self.given.curvature * way).clamp(max=self.given.lipschitz)

    def value_rounding(self, t: Tensor, y: Tensor) -> Tensor:
        return torch.zeros_like(t)

    def conjugate_rounding(self, t: Tensor, y: Tensor) -> Tensor:
        return torch.zeros_like(t)


class OfClasses(Family):
    """What losses of labels 0 and 1 have in common: e grows with the margin on the wrong side."""

    def direction(self, y: Tensor) -> Tensor:
        return torch.where(y > 0.5, -1.0, 1.0).to(y.dtype)


class LogisticFamily(OfClasses):
    """ψ(e) = log(1 + e^e) of the margin e on the wrong side."""

    def shift(self, y: Tensor) -> Tensor:
        return torch.zeros_like(y)

    def psi(self, e: Tensor, y: Tensor) -> Tensor:
        return e.clamp(min=0.0) + torch.log1p(torch.exp(-e.abs()))

    def slope(self, e: Tensor, y: Tensor) -> Tensor:
        t = torch.exp(-e.abs())
        return torch.where(e > 0, 1.0, t) / (1 + t)

    def bend(self, e: Tensor, y: Tensor) -> Tensor:
        t = torch.exp(-e.abs())
        return t / (1 + t) / (1 + t)

    def most_bend(self, e: Tensor, y: Tensor, way: Tensor) -> Tensor:
        return self.bend((e.abs() - way).clamp(min=0.0), y)

    def conjugate(self, t: Tensor, y: Tensor) -> Tensor:
        return xlog1py(1 - t, -t) + xlogy(t, t)

    def conjugate_rounding(self, t: Tensor, y: Tensor) -> Tensor:
        side = torch.where(t <= 0.5, t, (1 - t).clamp(min=EPS))
        return 8 * EPS * t * (1 + torch.where(side > 0, side.log().abs(), 0.0))


class PoissonFamily(Family):
    """ψ(e) = e^e − ye + y log y − y of the logarithm e of a rate."""

    def direction(self, y: Tensor) -> Tensor:
        return torch.ones_like(y)

    def shift(self, y: Tensor) -> Tensor:
        return torch.zeros_like(y)

    def psi(self, e: Tensor, y: Tensor) -> Tensor:
        return torch.where(y > 0, y * _excess(e - _log(y)), e.exp())

    def slope(self, e: Tensor, y: Tensor) -> Tensor:
        return torch.maximum(e.clamp(max=HIGHEST).exp() - y, -y * INSIDE)

    def bend(self, e: Tensor, y: Tensor) -> Tensor:
        return e.clamp(max=HIGHEST).exp()

    def working_bend(self, e: Tensor, y: Tensor) -> Tensor:
        above = e - torch.log1p(y)
        return self.bend(e, y) / torch.where(above > STEEP, above, 1.0)

    def most_bend(self, e: Tensor, y: Tensor, way: Tensor) -> Tensor:
        return self.bend(e + way.clamp(max=1.0), y)

    def conjugate(self, t: Tensor, y: Tensor) -> Tensor:
        v = t + y
        return xlogy(v, v) - v - (xlogy(y, y) - y)

    def steepest(self, t: Tensor, y: Tensor, way: Tensor) -> Tensor:
        known = torch.where(t + y < LARGE, t + y, torch.inf)
        return torch.maximum(known * way.exp() * (1 + 1e-9) - y, y)

    def value_rounding(self, t: Tensor, y: Tensor) -> Tensor:
        off = 8 * EPS * (1 + _log(torch.maximum(t + y, EPS * y)).abs() + _log(y).abs())
        return t.abs() * off + y * off**2

    def conjugate_rounding(self, t: Tensor, y: Tensor) -> Tensor:
        v = (t + y).abs()
        eta = EPS * (t.abs() + v)
        terms = v * (1 + _log(v).abs()) + y * (1 + _log(y).abs())
        return 8 * EPS * terms + eta * (1 + _log(eta).abs() + _log(v + eta).abs())


class HuberFamily(Family):
    """ψ(e) = e² up to δ, a straight line beyond."""

    def psi(self, e: Tensor, y: Tensor) -> Tensor:
        size = e.abs()
        return torch.where(size <= self.c, e * e, self.c * (2 * size - self.c))

    def slope(self, e: Tensor, y: Tensor) -> Tensor:
        most = 2 * self.c * INSIDE
        return (2 * e).clamp(-most, most)

    def bend(self, e: Tensor, y: Tensor) -> Tensor:
        return torch.where(e.abs() <= self.c, 2.0, 0.0).to(e.dtype)

    def most_bend(self, e: Tensor, y: Tensor, way: Tensor) -> Tensor:
        return torch.where(way > 0, 2 * self.c / e.abs().clamp(min=self.c), self.bend(e, y))


class SquaredHingeFamily(OfClasses):
    """ψ(e) = max(0, e)², e = 1 less the margin on the right side."""

    def shift(self, y: Tensor) -> Tensor:
        return torch.ones_like(y)

    def psi(self, e: Tensor, y: Tensor) -> Tensor:
        return e.clamp(min=0.0) ** 2

    def slope(self, e: Tensor, y: Tensor) -> Tensor:
        return 2 * e.clamp(min=0.0)

    def bend(self, e: Tensor, y: Tensor) -> Tensor:
        return torch.where(e > 0, 2.0, 0.0).to(e.dtype)

    def most_bend(self, e: Tensor, y: Tensor, way: Tensor) -> Tensor:
        return self.bend(e + way, y)


FAMILIES: dict[int | None, type[Family]] = {
    SQUARED: Family,
    LOGISTIC: LogisticFamily,
    POISSON: PoissonFamily,
    HUBER: HuberFamily,
    SQUARED_HINGE: SquaredHingeFamily,
}
"""By number; quantiles have no bend, and families without a number are NumPy's work."""


def _log(v: Tensor) -> Tensor:
    """log v, and zero where v is zero."""
    return torch.where(v > 0, v, 1.0).log()


def _excess(d: Tensor) -> Tensor:
    """e^d − 1 − d, by its series where that would cancel."""
    near = d * d * (1 / 2 + d * (1 / 6 + d * (1 / 24 + d * (1 / 120 + d * (1 / 720 + d / 5040)))))
    return torch.where(d.abs() < 0.01, near, torch.expm1(d) - d)
