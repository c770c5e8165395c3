"""Datasets as they are read: opening, views, columns, batches."""
