"""Rankings to contexts: enhancers, the extractors they use, and packing into a token budget."""
