"""Retrievers: which passages a question is answered from, and the encoder behind the dense ones."""
