"""AnnData's files and stores, read: members, matrices, names; cells of a dataset as AnnData again."""
