"""Tests, mirroring src/graphcontext."""
