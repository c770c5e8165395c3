"""Small files beside the shards of a dataset, of which it is not made."""

LIST = "skipped.jsonl"
"""The list of documents that `penstock write` left out."""
