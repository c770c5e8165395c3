"""Many machines, on Ray: what penstock.ray offers, and what `--ray` of the command line runs on."""
