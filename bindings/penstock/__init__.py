"""penstock: a checkpointable stream-with-metadata token data loader."""
