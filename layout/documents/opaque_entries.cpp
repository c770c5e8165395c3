#include "layout/documents/opaque_entries.h"

#include "core/base/error.h"
#include "layout/dataset/format.h"
#include "layout/documents/documents.h"
#include "layout/reading/block_reader.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace penstock::layout {
namespace {

constexpr std::uint64_t kChunkEntries = 1U << 17;
constexpr std::uint64_t kChunkBytes = 4U << 20;
constexpr std::uint64_t kMostBytes = 64U << 20;  // of an entry: files that lie are told before memory is taken

class ShardEntries {
 public:
  ShardEntries(const Shard& shard, const StoreChoice& through)
      : shard_(shard),
        index_(shard.index, side(shard.index, kIndexCrcName), through),
        data_(shard.data, side(shard.data, kDataCrcName), through) {}

  void read(std::vector<std::string>& out) {
    for (std::uint64_t first = 0; first < shard_.spans; first += ends_.size() - 1) {
      const std::uint64_t count = std::min(kChunkEntries, shard_.spans - first);
      const auto offsets = index_.read(first * kOffsetIndexEntryBytes, (count + 1) * kOffsetIndexEntryBytes);
      ends_.resize(count + 1);
      std::memcpy(ends_.data(), offsets.data(), offsets.size());
      for (std::uint64_t i = 0; i < count; ++i) check_opaque_entry(shard_, first + i, ends_[i], ends_[i + 1]);
      for (std::uint64_t i = 0; i < count;) i = read_some(i, first, out);
    }
  }

 private:
  [[nodiscard]] File side(const File& file, const char* name) const {
    return shard_.checks == Checks::None ? File() : file.beside(name, crc_bytes(file.bytes));
  }

  // Entry i of the chunk, which begins with entry `first`, and as many after it as fit; returns the one after them.
  std::uint64_t read_some(std::uint64_t i, std::uint64_t first, std::vector<std::string>& out) {
    const std::uint64_t begin = ends_[i];
    const auto after = std::upper_bound(ends_.begin() + static_cast<std::ptrdiff_t>(i) + 1, ends_.end(),
                                        begin + std::max(kChunkBytes, ends_[i + 1] - begin));
    const auto stop = static_cast<std::uint64_t>(after - ends_.begin()) - 1;
    if (ends_[stop] - begin > kMostBytes) {
      raise(ErrorKind::InvalidArgument, "{}: entry {} has {} bytes, at most {} are read here", shard_.data.path(),
            with_commas(first + i), with_commas(ends_[stop] - begin), with_commas(kMostBytes));
    }
    const auto bytes = data_.read(begin, ends_[stop] - begin);
    for (; i < stop; ++i) {
      out.emplace_back(reinterpret_cast<const char*>(bytes.data()) + (ends_[i] - begin), ends_[i + 1] - ends_[i]);
    }
    return stop;
  }

  const Shard& shard_;
  BlockReader index_;
  BlockReader data_;
  std::vector<std::uint64_t> ends_;
};

}  // namespace

void check_opaque_entry(const Shard& shard, std::uint64_t number, std::uint64_t begin, std::uint64_t end) {
  const bool first_wrong = number == 0 && begin != 0;
  const bool last_wrong = number + 1 == shard.spans && end != shard.data.bytes;
  if (end >= begin && end <= shard.data.bytes && !first_wrong && !last_wrong) return;
  raise(ErrorKind::Corruption, "{}: entry {} is bytes {} to {}: not in its place in the {} bytes of {}",
        shard.index.path(), with_commas(number), with_commas(begin), with_commas(end), with_commas(shard.data.bytes),
        shard.data.path());
}

std::vector<std::string> read_opaque_entries(const Dataset& dataset, const StoreChoice& through) {
  if (dataset.spans != SpanKind::Opaque) {
    raise(ErrorKind::InvalidArgument, "{}: {}, not entries without records", dataset.path, dataset.mode);
  }
  static_cast<void>(make_opaque_document_finder(dataset));  // which checks the sizes of the files
  std::vector<std::string> entries;
  for (const Shard& shard : dataset.shards) ShardEntries(shard, through).read(entries);
  return entries;
}

}  // namespace penstock::layout
