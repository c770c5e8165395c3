"""From text to token ids: inputs, tasks, tokenizers and the processes that do the work; used by `penstock write`."""
