"""Metrics and statistics: what a prediction is worth, and how sure that is."""
