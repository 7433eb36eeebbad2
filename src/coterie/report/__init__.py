"""Pictures and pages of solutions; nothing here solves."""
