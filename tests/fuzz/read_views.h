// Reading views of a dataset whose files are in memory, as the engine reads them: rounds of planned reads, one row
// after the other.
//
// What the engine relies on is required of a source: reads inside of their files, spans inside of their rows. One
// thread.
#pragma once

#include "core/rows/source.h"
#include "layout/dataset.h"
#include "tests/fuzz/targets.h"
#include "tests/native/core/io/memory_store.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace penstock::fuzz {

using MemoryStorePtr = std::shared_ptr<testing::MemoryStore>;

/// Puts it into the store under this path.
void put(testing::MemoryStore& store, const std::string& path, Input bytes);
void put(testing::MemoryStore& store, const std::string& path, std::string_view bytes);

/// Sees an observation that was read, with its spans, where these were wanted.
using LookAt = std::function<void(std::uint64_t index, const SpanTable& spans)>;

/// Reads up to six of the view's observations, from `first` modulo their number on; gives up at the third that is
/// refused. True: one of them was read.
bool read_some(const Source& source, std::uint64_t first, const LookAt& look_at = {});

/// Reads windows, documents and lengths of documents, as far as the dataset has them. True: some of them.
bool read_views(const layout::DatasetPtr& dataset, std::uint64_t first, std::uint64_t window);

}  // namespace penstock::fuzz
