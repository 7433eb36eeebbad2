"""How messages travel: by Flower (flwr), which comes with the extra coterie[flower]."""
