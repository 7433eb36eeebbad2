"""An order of nodes in which neighbours are near each other, found from the edges: fast memory then holds them."""

from __future__ import annotations

import torch

from coterie.engines.gpu.clusters import connected
from coterie.engines.gpu.exact import Tensor

CACHED = 24 << 20  # bytes of weights that fast memory holds in any order: half of an H200's, which is in two halves
NEAR = 4 << 20  # bytes of weights between neighbours in a good order, at most
TIES = 0.1  # relative: between edges that are about as good the lot decides, else nodes would wait in line


def nearby(i: Tensor, j: Tensor, V: int, width: int) -> Tensor:
    """Nodes in the order to keep them in, (V,), with `width` bytes each: the given one where that is good enough."""
    far = V * width > CACHED and len(i) > 0 and float(((i - j).abs() > NEAR // width).double().mean()) > 0.5
    return clustered(i, j, V) if far else torch.arange(V, device=i.device)


def clustered(i: Tensor, j: Tensor, V: int) -> Tensor:
    """Nodes in an order of nested clusters.

    Every node joins the neighbour with which it shares most edges, in relation to how many either has. What is joined
    is one node of the next round, until no edge is left. Nodes of a cluster stand side by side, in every round.
    """
    a, b, weight, rounds = i.long(), j.long(), torch.ones(len(i), device=i.device), []
    chance = torch.Generator(i.device).manual_seed(0)
    while len(a):
        cluster = _joined(a, b, weight, V, chance)
        rounds.append(cluster)
        V = int(cluster.max()) + 1
        a, b, weight = _contracted(cluster[a], cluster[b], weight, V)
    order = torch.arange(V, device=i.device)
    for cluster in reversed(rounds):
        place = torch.empty_like(order)
        place[order] = torch.arange(len(order), device=i.device)
        order = torch.argsort(place[cluster], stable=True)
    return order


def _joined(a: Tensor, b: Tensor, weight: Tensor, V: int, chance: torch.Generator) -> Tensor:
    """The cluster that each node is in when all have joined their best neighbour; clusters are numbered from 0."""
    degree = weight.new_zeros(V).index_add_(0, a, weight).index_add_(0, b, weight)
    score = weight / (degree[a] * degree[b]) * (1 + TIES * torch.rand(len(a), device=a.device, generator=chance))
    best = weight.new_zeros(V).scatter_reduce_(0, a, score, "amax").scatter_reduce_(0, b, score, "amax")
    joins = (score == best[a]) | (score == best[b])
    node = torch.arange(V, device=a.device)
    first = connected(node.clone(), a[joins], b[joins])
    return (torch.cumsum(first == node, 0) - 1)[first]


def _contracted(a: Tensor, b: Tensor, weight: Tensor, V: int) -> tuple[Tensor, Tensor, Tensor]:
    """Edges between different nodes, parallel ones as one."""
    across = a != b
    key, of = torch.unique((torch.minimum(a, b) * V + torch.maximum(a, b))[across], return_inverse=True)
    return key // V, key % V, weight.new_zeros(len(key)).index_add_(0, of, weight[across])
