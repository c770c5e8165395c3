"""The command `penstock`. Each command is a module, imported when it is run."""
