"""Contexts to answers: generators, prompts, and the language models they ask."""
