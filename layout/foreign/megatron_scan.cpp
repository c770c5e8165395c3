#include "core/base/checked.h"
#include "layout/foreign/foreign_array.h"
#include "layout/foreign/megatron.h"
#include "layout/reading/reads.h"

#include <algorithm>
#include <cstring>

namespace penstock::layout {
namespace {

constexpr std::uint64_t kHeaderBytes = 34;
constexpr std::string_view kMegatronMagic("MMIDIDX\0\0", 9);

template <typename... Arguments>
[[noreturn]] void corrupt(const ForeignFile& idx, fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  raise(ErrorKind::Corruption, "{}: {}", idx.path(), fmt::format(format, std::forward<Arguments>(arguments)...));
}

void set_type(const ForeignFile& idx, unsigned code, MegatronIndex& index) {
  struct Type {
    const char* name;
    std::uint64_t bytes;
  };
  static constexpr Type kTypes[] = {{"", 0},    {"|u1", 1}, {"|i1", 1}, {"<i2", 2}, {"<i4", 4},
                                    {"<i8", 8}, {"", 0},    {"", 0},    {"<u2", 2}};
  if (code == 6 || code == 7) {
    raise(ErrorKind::InvalidArgument, "{}: its values are {} (dtype code {}), tokens are integers", idx.path(),
          code == 6 ? "float64" : "float32", code);
  }
  if (code == 0 || code > 8) corrupt(idx, "dtype code {}, 1 to 8 are known", code);
  index.type = kTypes[code].name;
  index.item_bytes = kTypes[code].bytes;
}

void check_size(const ForeignFile& idx, const MegatronIndex& index) {
  const std::uint64_t end =
      checked_add(index.documents_offset, checked_mul(index.documents + 1, 8, "documents"), "idx");
  if (idx.bytes() == end) return;
  // Multimodal datasets have one i8 for each sequence after that.
  if (idx.bytes() > end && idx.bytes() - end == index.sequences) {
    raise(ErrorKind::InvalidArgument, "{}: a multimodal dataset (modes of {} sequences follow): penstock reads text",
          idx.path(), with_commas(index.sequences));
  }
  corrupt(idx, "{} bytes, but {} sequences and {} documents want {}", with_commas(idx.bytes()),
          with_commas(index.sequences), with_commas(index.documents), with_commas(end));
}

MegatronIndex read_header(const ForeignFile& idx, Digest& digest) {
  const std::vector<std::byte> header = idx.head(kHeaderBytes);
  if (header.size() < kHeaderBytes)
    corrupt(idx, "{} bytes, a Megatron index has at least {}", header.size(), kHeaderBytes);
  if (std::memcmp(header.data(), kMegatronMagic.data(), kMegatronMagic.size()) != 0) {
    corrupt(idx, "not a Megatron index: it does not begin with MMIDIDX");
  }
  const auto version = load<std::uint64_t>(&header[9]);
  if (version != 1) raise(ErrorKind::InvalidArgument, "{}: Megatron index version {}, 1 is known", idx.path(), version);
  MegatronIndex index;
  set_type(idx, std::to_integer<unsigned>(header[17]), index);
  index.sequences = load<std::uint64_t>(&header[18]);
  const auto boundaries = load<std::uint64_t>(&header[26]);
  if (boundaries == 0) corrupt(idx, "no document boundaries, at least one is wanted");
  index.documents = boundaries - 1;
  index.pointers_offset = checked_add(kHeaderBytes, checked_mul(index.sequences, 4, "lengths"), "idx");
  index.documents_offset = checked_add(index.pointers_offset, checked_mul(index.sequences, 8, "pointers"), "idx");
  check_size(idx, index);
  digest.update(header);
  return index;
}

// Walks lengths and pointers together, sequence by sequence.
class Sequences {
 public:
  Sequences(const ForeignFile& idx, const MegatronIndex& index)
      : idx_(idx),
        index_(index),
        lengths_(idx, kHeaderBytes, index.sequences),
        pointers_(idx, index.pointers_offset, index.sequences) {}

  // On to sequence `to`, which is at most all of them.
  void advance(std::uint64_t to) {
    for (; sequence_ < to; ++sequence_) {
      const std::int32_t length = lengths_.next();
      const std::int64_t pointer = pointers_.next();
      if (length < 0) corrupt(idx_, "sequence {} has length {}", sequence_, length);
      // Below 2^63 at the pointer before, a length of 2^31 ago: it cannot have wrapped.
      const std::uint64_t wanted = tokens_ * index_.item_bytes;
      if (pointer < 0 || static_cast<std::uint64_t>(pointer) != wanted) {
        corrupt(idx_, "sequence {} begins at byte {}, the lengths before it add up to {}", sequence_, pointer, wanted);
      }
      tokens_ += static_cast<std::uint64_t>(length);
    }
  }

  [[nodiscard]] std::uint64_t sequence() const noexcept { return sequence_; }
  [[nodiscard]] std::uint64_t tokens() const noexcept { return tokens_; }
  void add_to(Digest& digest) const {
    digest.update(lengths_.digest());
    digest.update(pointers_.digest());
  }

 private:
  const ForeignFile& idx_;
  const MegatronIndex& index_;
  ForeignArray<std::int32_t> lengths_;
  ForeignArray<std::int64_t> pointers_;
  std::uint64_t sequence_ = 0;
  std::uint64_t tokens_ = 0;
};

// Appends the sample of a document if the block before it is full.
void sample(MegatronIndex& index, const MegatronSample& at) {
  if (index.samples.empty() || at.document - index.samples.back().document >= MegatronIndex::kBlockDocuments ||
      at.sequence - index.samples.back().sequence >= MegatronIndex::kBlockSequences) {
    index.samples.push_back(at);
  }
}

}  // namespace

MegatronIndex scan_megatron_index(const ForeignFile& idx, std::uint64_t bin_bytes, Digest& digest) {
  MegatronIndex index = read_header(idx, digest);
  Sequences sequences(idx, index);
  ForeignArray<std::int64_t> documents(idx, index.documents_offset, index.documents + 1);
  for (std::uint64_t document = 0; document <= index.documents; ++document) {
    const std::int64_t first = documents.next();
    const bool first_wrong = document == 0 && first != 0;
    if (first_wrong || first < static_cast<std::int64_t>(sequences.sequence()) ||
        static_cast<std::uint64_t>(first) > index.sequences) {
      corrupt(idx, "document {} begins at sequence {}, after sequence {} of {}", document, first, sequences.sequence(),
              index.sequences);
    }
    sequences.advance(static_cast<std::uint64_t>(first));
    if (document < index.documents) sample(index, {document, sequences.sequence(), sequences.tokens()});
  }
  if (sequences.sequence() != index.sequences) {
    corrupt(idx, "the documents end at sequence {} of {}", sequences.sequence(), index.sequences);
  }
  index.tokens = sequences.tokens();
  index.samples.push_back({index.documents, index.sequences, index.tokens});
  if (checked_mul(index.tokens, index.item_bytes, "tokens") != bin_bytes) {
    corrupt(idx, "{} tokens of {} bytes, but the .bin beside it has {} bytes", with_commas(index.tokens),
            index.item_bytes, with_commas(bin_bytes));
  }
  sequences.add_to(digest);
  digest.update(documents.digest());
  return index;
}

}  // namespace penstock::layout
