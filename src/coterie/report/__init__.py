"""Pictures and pages of solutions; nothing here solves.

A file per picture, or per two that show the same numbers: the numbers, the matplotlib drawing and the plotly figure.
"""
