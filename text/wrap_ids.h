// Token ids of documents as a dataset stores them: narrow, with ids before and behind each document. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>

namespace penstock::text {

using WrapInput = std::variant<std::span<const std::uint32_t>, std::span<const std::int64_t>>;
using WrapOutput = std::variant<std::span<std::uint8_t>, std::span<std::uint16_t>, std::span<std::uint32_t>>;

/// Documents of ids: document i ends before ids[ends[i]], and begins where the one before ended, the first one at
/// `first`.
struct IdDocuments {
  WrapInput ids;
  std::uint64_t first = 0;
  std::span<const std::uint64_t> ends;
};

/// The ids that each document gets.
struct IdWrapping {
  std::span<const std::uint32_t> prepend;
  std::span<const std::uint32_t> append;
  std::uint64_t last = 0;  // the largest id that there may be
};

/// Ids of all documents together, wrapped. Throws InvalidArgument for a document that does not lie within the ids.
[[nodiscard]] std::uint64_t wrapped_size(const IdDocuments& documents, const IdWrapping& wrapping);

/// Writes wrapped_size() ids to `out` and the number of each document's to `lengths`. Returns the index in `out` of the
/// first id that is negative or above `wrapping.last`, -1 where there is none. Throws InvalidArgument for a `last` that
/// the type of `out` cannot hold.
std::int64_t wrap_ids(const IdDocuments& documents, const IdWrapping& wrapping, WrapOutput out,
                      std::span<std::uint64_t> lengths);

}  // namespace penstock::text
