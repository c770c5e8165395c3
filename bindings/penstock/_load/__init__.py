"""Which observations come when, and the loaders: orders, jobs, mixtures, states."""
