#include "layout/documents/document_bounds.h"

#include "core/base/checked.h"
#include "layout/dataset.h"
#include "layout/foreign/foreign_array.h"
#include "layout/reading/reads.h"

#include <algorithm>

namespace penstock::layout {
namespace {

// The token that a value stands for; nullopt where it stands for none.
std::optional<std::uint64_t> token_of(const BoundsArray& array, std::uint64_t value) {
  if (value < array.base || (value - array.base) % array.unit != 0) return std::nullopt;
  return (value - array.base) / array.unit;
}

class Values {
 public:
  Values(const ForeignFile& file, const BoundsArray& array, std::uint64_t count)
      : narrow_(file, array.offset, array.width == 4 ? count : 0),
        wide_(file, array.offset, array.width == 4 ? 0 : count),
        is_narrow_(array.width == 4) {}

  std::uint64_t next() { return is_narrow_ ? narrow_.next() : wide_.next(); }
  [[nodiscard]] DigestBytes digest() const { return is_narrow_ ? narrow_.digest() : wide_.digest(); }

 private:
  ForeignArray<std::uint32_t> narrow_;
  ForeignArray<std::uint64_t> wide_;
  bool is_narrow_;
};

}  // namespace

DocumentBounds::DocumentBounds(const ForeignFile& index, const BoundsArray& array, std::uint64_t documents,
                               std::uint64_t tokens, Digest& digest)
    : array_(array), documents_(documents), tokens_(tokens) {
  Values values(index, array, documents + (array.has_first ? 1 : 0));
  std::uint64_t last = 0;
  if (array.has_first) {
    const std::uint64_t first = values.next();
    if (first != array.base) {
      raise(ErrorKind::Corruption, "{}: document 0 begins at {}, {} is wanted", index.path(), with_commas(first),
            with_commas(array.base));
    }
  }
  for (std::uint64_t document = 0; document < documents; ++document) {
    if (document % kBlock == 0) samples_.push_back(last);
    const std::uint64_t value = values.next();
    const std::optional<std::uint64_t> token = token_of(array, value);
    if (!token || *token < last || *token > tokens) {
      raise(ErrorKind::Corruption, "{}: document {} ends at {}{}, but it begins at token {} of {}", index.path(),
            with_commas(document), array.unit == 1 ? "token " : "byte ", with_commas(value), with_commas(last),
            with_commas(tokens));
    }
    last = *token;
  }
  if (last != tokens) {
    raise(ErrorKind::Corruption, "{}: its {} documents end at token {} of {}", index.path(), with_commas(documents),
          with_commas(last), with_commas(tokens));
  }
  samples_.push_back(tokens);
  digest.update(values.digest());
}

DocumentBounds::Range DocumentBounds::around(std::uint64_t from, std::uint64_t to) const {
  if (documents_ == 0) return {0, 0};
  const auto low = std::upper_bound(samples_.begin(), samples_.end() - 1, from) - 1;
  const auto high = std::lower_bound(low, samples_.end(), to);
  const auto number = [&](auto at) { return static_cast<std::uint64_t>(at - samples_.begin()) * kBlock; };
  return {number(low), std::min(number(high), documents_)};
}

DocumentBounds::Place DocumentBounds::place(std::uint64_t first, std::uint64_t stop) const noexcept {
  const bool has_zero = first == 0 && !array_.has_first;
  const std::uint64_t begin = array_.has_first || has_zero ? first : first - 1;
  const std::uint64_t count = stop - first + (has_zero ? 0 : 1);
  return {array_.offset + begin * array_.width, count * array_.width, has_zero};
}

std::uint64_t DocumentBounds::value_at(const std::byte* bytes, std::uint64_t i) const noexcept {
  return array_.width == 4 ? load_at<std::uint32_t>(bytes, i) : load_at<std::uint64_t>(bytes, i);
}

void DocumentBounds::starts(const Shard& shard, std::uint64_t first, const std::byte* bytes,
                            std::span<std::uint64_t> out) const {
  const bool has_zero = first == 0 && !array_.has_first;
  if (has_zero) out[0] = 0;
  std::uint64_t last = 0;
  for (std::size_t i = has_zero ? 1 : 0; i < out.size(); ++i) {
    const std::uint64_t value = value_at(bytes, i - (has_zero ? 1 : 0));
    const std::optional<std::uint64_t> token = token_of(array_, value);
    if (!token || *token < last || *token > tokens_) {
      raise(ErrorKind::Corruption, "{}: document {} begins at {}: the file changed after it was opened",
            shard.index.path(), with_commas(first + i), with_commas(value));
    }
    last = out[i] = *token;
  }
}

}  // namespace penstock::layout
