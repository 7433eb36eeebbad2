"""Flower (flwr) as the carrier of a federation; comes with the extra coterie[flower]."""
