"""Other people's token formats, in and out: `penstock.import_tokens` and `penstock.export`."""
