// Checks: what is read of our datasets is compared with its check values, before any source looks at it.
//
// A decorator of a view's source. A read of a file that is to be checked is widened to whole blocks of 4 KiB; their
// check values come from the side file (<file>.crc) in the same round. Before the next round both are compared, and the
// wanted bytes are copied to their destination. Shard::checks says which files are checked. The first reads of every
// file of a shard are checked too, and its shard.json is compared with the manifest, so that a file or a shard that was
// exchanged for another of the same size is seen. Any thread.
#pragma once

#include "layout/dataset.h"

#include <memory>

namespace penstock::layout {

/// `source`, a view of `dataset`, with checks; `source` itself where no shard has any.
std::shared_ptr<const Source> checked(const DatasetPtr& dataset, std::shared_ptr<const Source> source);

}  // namespace penstock::layout
