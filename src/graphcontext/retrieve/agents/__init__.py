"""Agents of a traversal: what each says it needs next, given a question and the passages on a path (KGP §4.2)."""
