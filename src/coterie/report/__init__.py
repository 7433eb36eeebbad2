"""Pictures and pages of solutions; nothing here solves.

One picture a file: the numbers it shows, the matplotlib drawing of them and the plotly figure of them.
"""
