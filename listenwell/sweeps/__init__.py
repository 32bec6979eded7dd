"""Grids of training runs and the aggregation of their results."""
