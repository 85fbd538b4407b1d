"""Passage graphs: builders, health, calibration, PageRank."""
