"""Sentences that the tiny models' tokenizers are trained on."""

SENTENCES = [
    "Ada King joined IBM in London.",
    "Canonical maintains Ubuntu and Launchpad.",
    "Linus Torvalds wrote Git.",
    "The team of Ada King met Linus Torvalds at Canonical.",
]
