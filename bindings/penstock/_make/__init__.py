"""Making datasets: the writer, folders of shards on disk and in buckets, workers, publishing."""
