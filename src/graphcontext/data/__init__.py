"""Original formats to records: readers, filters, splits, leak checks, tokenizers, the shipped samples."""
