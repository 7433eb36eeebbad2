"""The first thing to run: three methods on one draw of the paper's network."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from coterie.datasets import SyntheticNetwork
from coterie.experiments.methods import Outcome, certified_optimum, linear_regression, paper_iteration
from coterie.experiments.settings import PRINTED
from coterie.experiments.table import Step
from coterie.io.files import staged
from coterie.report.figures import new_figure, save_figure
from coterie.report.network import draw_network

PICTURE = "network.png"
STEPS = 4


@dataclass(frozen=True, eq=False)
class Demo:
    """The network, what each method made of it, and where the picture is."""

    network: SyntheticNetwork
    outcomes: list[Outcome]
    picture: Path


def run_demo(out: Path, seed: int, step: Step) -> Demo:
    """Fit the network of the paper and draw it, coloured by the weights of the certified solution, into `out`."""
    with staged(out) as folder:
        step("drawing a network from the stochastic block model")
        network = PRINTED.network(seed)
        step("solving to a certified gap of 1e-6")
        optimum = certified_optimum(PRINTED, network)
        step("running Algorithm 1 as printed")
        outcomes = [optimum, paper_iteration(PRINTED, network), linear_regression(network)]
        step("drawing the picture")
        assert optimum.w is not None
        figure = new_figure(9, 5)
        draw_network(figure.add_subplot(), network.graph, optimum.w, labelled=network.data.labelled.M)
        save_figure(figure, folder / PICTURE)
    return Demo(network, outcomes, out / PICTURE)
