"""Colours that people with any colour vision can tell apart."""

# Okabe and Ito's eight; black is left for text, and yellow is the last resort.
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9", "#000000")
CATEGORIES = (*COLOURS[:-1], "#f0e442")

# Perceptually uniform: viridis, and cmocean's balance without its darkest ends.
SEQUENTIAL = "viridis"
DIVERGING = (
    "#0b66bd",
    "#4590b9",
    "#8eb5c2",
    "#d2d8db",
    "#eeeae7",
    "#e6d2cc",
    "#d59d89",
    "#c46548",
    "#ac2b24",
)
