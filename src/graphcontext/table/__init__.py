"""Tables: cells from runs, their tests and status, and their five renderings."""
