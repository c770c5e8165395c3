"""Tests of other packages that do not pass over penstock, and why: docs/collections.md has the same in words."""

_WORKERS = "a DataLoader's workers are refused: processes=, or BatchDataset for views"
_WORDS = "the refusal has other words"
_PART = "an integer gives a part of Collections, and scDataset's estimate asks for an observation by it"

DIFFERENCES: dict[str, dict[str, str]] = {
    "scdataset": {
        "TestScDatasetDDP::test_ddp_high_world_size_small_data": "every rank has as many batches",
        "TestScDatasetDDP::test_ddp_with_dataloader_multiprocessing": _WORKERS,
        "TestDDPWithDataLoader::test_ddp_with_dataloader_workers": _WORKERS,
        "TestDDPEpochConsistency::test_ddp_epoch_different_shuffling": "ranks share all of an epoch, not parts of it",
        "TestBlockWeightedSamplingEdgeCases::test_weights_mismatch_with_data_raises_error": _WORDS,
        "TestDualWeightBehavior::test_weighted_mismatched_length_raises_error": _WORDS,
        "TestEstimateSampleSize::test_multiindexable_sample_size": _PART,
        "TestEstimateSampleSize::test_multiindexable_with_fetch_transform": _PART,
        "TestDeepSizeof::test_multiindexable": "scDataset's estimate of bytes knows its own class",
        "TestMemoryEstimationAccuracy::test_multiindexable_batch_size_matches_estimate": _PART,
        "TestAutoConfigEdgeCases::test_large_batch_size": "suggest refuses a batch of more observations than there are",
    },
    "annbatch": {
        "test_batch_sizes_match_expected_pattern[RandomSampler]": "blocks begin at a place that each epoch draws",
        "test_workers_cover_full_dataset_without_overlap[batch_size_one_three_workers_uneven_case]": (
            "every worker has as many batches"
        ),
    },
}
