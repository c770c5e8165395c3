"""What datasets are made from: text, token files, cells, rows of Ray."""
