"""The budgets, measured in one run beside their peers: `python -m bench`."""
