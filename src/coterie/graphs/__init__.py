"""Graphs where there is none, and whether a graph's labels can resolve its clusters."""

from coterie.graphs.knn import knn_graph
from coterie.graphs.product import product_graph, time_graph
from coterie.graphs.resolvability import ClusterFlow, Resolvability, resolvability
from coterie.graphs.similarity import similarity_graph
from coterie.graphs.similarity_recipe import SimilarityGraph

__all__ = [
    "ClusterFlow",
    "Resolvability",
    "SimilarityGraph",
    "knn_graph",
    "product_graph",
    "resolvability",
    "similarity_graph",
    "time_graph",
]
