"""The order of the tutorials: that of this list, from the first steps to the large machines."""

ORDER = (
    "paper_network.py",
    "house_prices.py",
    "weather_stations.py",
    "counts_and_classes.py",
    "space_time.py",
    "choosing_lam.py",
    "convex_clustering.py",
    "three_sites.py",
    "cluster.py",
    "gpu.py",
)


def by_number(name: str) -> tuple[int, str]:
    """Return the place of a tutorial; those that are not listed come last, by name."""
    return ORDER.index(name) if name in ORDER else len(ORDER), name
