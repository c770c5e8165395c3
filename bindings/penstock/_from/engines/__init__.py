"""Engines: what turns text into a tokenizer's ids, and the buffers that texts and ids lie in."""
