"""Generated networks to try things on."""
