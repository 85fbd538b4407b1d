"""Instruction tuning on Lightning: examples, batches, loss, adapters, checkpoints, and what it costs."""
