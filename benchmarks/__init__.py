"""Coterie beside the solvers that a user could pick instead. See README.md in this directory."""
