#include "layout/foreign/mds_shard.h"

#include "core/base/checked.h"
#include "layout/foreign/foreign_array.h"
#include "layout/reading/reads.h"

#include <algorithm>
#include <array>
#include <utility>

namespace penstock::layout {
namespace {

constexpr std::uint64_t kSizeBytes = 4;
constexpr unsigned kMostAxes = 63;
constexpr std::uint64_t kMostPrefixBytes = 2 + 8 * kMostAxes;

template <typename... Arguments>
[[noreturn]] void corrupt(const ForeignFile& file, std::uint64_t sample, fmt::format_string<Arguments...> format,
                          Arguments&&... arguments) {
  raise(ErrorKind::Corruption, "{}: sample {} {}", file.path(), with_commas(sample),
        fmt::format(format, std::forward<Arguments>(arguments)...));
}

// Small pieces of a file, read forward: through a buffer where they are near each other, else one by one.
class Pieces {
 public:
  Pieces(const ForeignFile& file, std::uint64_t mean_distance)
      : file_(file), buffer_bytes_(mean_distance > kNear ? kFew : kMany) {}

  // Valid until the next call.
  const std::byte* read(std::uint64_t offset, std::uint64_t size) {
    if (offset < begin_ || size > begin_ + buffer_.size() || offset > begin_ + buffer_.size() - size) {
      begin_ = offset;
      buffer_.resize(std::max(size, std::min(buffer_bytes_, file_.bytes() - offset)));
      file_.read(begin_, buffer_);
    }
    return &buffer_[offset - begin_];
  }

 private:
  static constexpr std::uint64_t kNear = 64 << 10;
  static constexpr std::uint64_t kFew = 4 << 10;
  static constexpr std::uint64_t kMany = 1 << 20;

  const ForeignFile& file_;
  std::uint64_t buffer_bytes_;
  std::uint64_t begin_ = 0;
  std::vector<std::byte> buffer_;
};

class Scan {
 public:
  Scan(const ForeignFile& file, const MdsTokens& tokens, std::uint64_t samples)
      : file_(file), tokens_(tokens), samples_(samples) {
    for (std::size_t i = 0; i < tokens.columns.size(); ++i) {
      const MdsColumn& column = tokens.columns[i];
      if (!column.bytes) head_bytes_ += kSizeBytes;
      if (i != tokens.column) fixed_bytes_ += column.bytes.value_or(0);
      if (i < tokens.column) fixed_before_ += column.bytes.value_or(0);
    }
    const bool token_is_variable = !tokens.columns[tokens.column].bytes;
    is_plain_ = head_bytes_ == (token_is_variable ? kSizeBytes : 0) && !tokens.says_type;
  }

  DocumentTable run(Digest& digest) {
    ForeignArray<std::uint32_t> offsets(file_, kSizeBytes, samples_ + 1);
    std::uint64_t begin = offsets.next();
    const std::uint64_t first = kSizeBytes * (samples_ + 2);
    if (begin < first || begin > file_.bytes()) corrupt(file_, 0, "begins at byte {} of {}", begin, file_.bytes());
    Pieces pieces(file_, (file_.bytes() - begin) / std::max<std::uint64_t>(samples_, 1));
    for (std::uint64_t sample = 0; sample < samples_; ++sample) {
      const std::uint64_t end = offsets.next();
      if (end < begin || end > file_.bytes()) {
        corrupt(file_, sample, "is bytes {} to {} of {}", begin, end, file_.bytes());
      }
      add(sample, begin, end, pieces);
      begin = end;
    }
    if (begin != file_.bytes()) {
      raise(ErrorKind::Corruption, "{}: {} bytes, its samples end at byte {}", file_.path(), with_commas(file_.bytes()),
            with_commas(begin));
    }
    digest.update(offsets.digest());
    table_.finish();
    return std::move(table_);
  }

 private:
  void add(std::uint64_t sample, std::uint64_t begin, std::uint64_t end, Pieces& pieces) {
    // The first sample of a shard is looked at: whether its head is what its size says.
    const std::optional<std::uint64_t> prefix = is_plain_ ? plain_prefix(end - begin) : std::nullopt;
    if (!prefix || sample == 0) return walk(sample, begin, end, prefix, pieces);
    const std::uint64_t bytes = end - begin - head_bytes_ - fixed_bytes_;
    table_.add((bytes - *prefix) / tokens_.type.bytes, begin + head_bytes_ + fixed_before_ + *prefix);
  }

  // The bytes before an array's values, told by how many there are: each number of axes and of bytes of a length gives
  // other ones. Nullopt where it is not that of one axis.
  [[nodiscard]] std::optional<std::uint64_t> plain_prefix(std::uint64_t sample_bytes) const {
    const std::uint64_t item = tokens_.type.bytes;
    if (sample_bytes < head_bytes_ + fixed_bytes_) return std::nullopt;
    const std::uint64_t bytes = sample_bytes - head_bytes_ - fixed_bytes_;
    const std::optional<std::uint64_t> fixed = tokens_.columns[tokens_.column].bytes;
    if (fixed && *fixed != bytes) return std::nullopt;
    if (!tokens_.says_shape) return bytes % item == 0 ? std::optional<std::uint64_t>(0) : std::nullopt;
    for (const std::uint64_t width : {1, 2, 4}) {
      if (bytes < 1 + width || (bytes - 1 - width) % item != 0) continue;
      const std::uint64_t count = (bytes - 1 - width) / item;
      const std::uint64_t least = width == 1 ? 1 : std::uint64_t{1} << (4 * width);
      if (count >= least && count >> (8 * width) == 0) return 1 + width;
    }
    return std::nullopt;
  }

  void walk(std::uint64_t sample, std::uint64_t begin, std::uint64_t end, std::optional<std::uint64_t> expected,
            Pieces& pieces) {
    if (end - begin < head_bytes_) corrupt(file_, sample, "has {} bytes, its head alone {}", end - begin, head_bytes_);
    const std::byte* const head = pieces.read(begin, head_bytes_);
    std::uint64_t at = begin + head_bytes_;
    std::uint64_t place = 0;
    std::uint64_t bytes = 0;
    std::uint64_t variable = 0;
    for (std::size_t i = 0; i < tokens_.columns.size(); ++i) {
      const MdsColumn& column = tokens_.columns[i];
      const std::uint64_t size = column.bytes ? *column.bytes : load_at<std::uint32_t>(head, variable++);
      if (i == tokens_.column) {
        place = at;
        bytes = size;
      }
      at = checked_add(at, size, file_.path().c_str());
    }
    if (at != end) corrupt(file_, sample, "has columns of {} bytes, but {} in all", at - begin, end - begin);
    const std::uint64_t prefix = tokens_.is_array ? array_prefix(sample, place, bytes, pieces) : 0;
    if (expected && *expected != prefix) is_plain_ = false;  // arrays of several axes
    if ((bytes - prefix) % tokens_.type.bytes != 0) {
      corrupt(file_, sample, "has {} bytes of column {}, no multiple of {}, the size of a token", bytes - prefix,
              excerpt(tokens_.columns[tokens_.column].name), tokens_.type.bytes);
    }
    table_.add((bytes - prefix) / tokens_.type.bytes, place + prefix);
  }

  std::uint64_t array_prefix(std::uint64_t sample, std::uint64_t place, std::uint64_t bytes, Pieces& pieces) {
    const std::byte* const head = pieces.read(place, std::min(bytes, kMostPrefixBytes));
    const auto byte = [&](std::uint64_t i) {
      if (i >= bytes) corrupt(file_, sample, "has an array of {} bytes, less than its head", bytes);
      return std::to_integer<unsigned>(head[i]);
    };
    std::uint64_t at = 0;
    if (tokens_.says_type) {
      const unsigned code = byte(at++);
      if (const auto type = mds_type(code); !type || !(*type == tokens_.type)) {
        raise(ErrorKind::InvalidArgument, "{}: sample {} has an array of type {} ({}), others are {}", file_.path(),
              with_commas(sample), code, type ? type->name() : "no integers", tokens_.type.name());
      }
    }
    if (!tokens_.says_shape) return at;
    const unsigned shape = byte(at++);
    const std::uint64_t width = std::uint64_t{1} << (shape % 4);
    const std::uint64_t axes = shape / 4;
    std::uint64_t count = 1;
    for (std::uint64_t axis = 0; axis < axes; ++axis) {
      std::uint64_t length = 0;
      for (std::uint64_t i = 0; i < width; ++i) length |= std::uint64_t{byte(at + i)} << (8 * i);
      count = checked_mul(count, length, file_.path().c_str());
      at += width;
    }
    if (axes == 0 || checked_mul(count, tokens_.type.bytes, file_.path().c_str()) != bytes - at) {
      corrupt(file_, sample, "has an array of {} axes, {} values and {} bytes", axes, with_commas(count), bytes - at);
    }
    return at;
  }

  const ForeignFile& file_;
  const MdsTokens& tokens_;
  const std::uint64_t samples_;
  std::uint64_t head_bytes_ = 0;    // sizes of the columns that have no fixed one
  std::uint64_t fixed_bytes_ = 0;   // of the columns but that of the tokens …
  std::uint64_t fixed_before_ = 0;  // … and of those before it
  bool is_plain_ = false;           // a sample's size tells where its tokens lie
  DocumentTable table_{true};
};

}  // namespace

std::optional<ScalarType> mds_type(unsigned code) {
  switch (code) {
    case 8: return ScalarType{'u', 1};
    case 9: return ScalarType{'i', 1};
    case 16: return ScalarType{'u', 2};
    case 17: return ScalarType{'i', 2};
    case 32: return ScalarType{'u', 4};
    case 33: return ScalarType{'i', 4};
    case 64: return ScalarType{'u', 8};
    case 65: return ScalarType{'i', 8};
    default: return std::nullopt;
  }
}

DocumentTable scan_mds_shard(const ForeignFile& file, const MdsTokens& tokens, std::uint64_t samples, Digest& digest) {
  const std::uint64_t least =
      checked_mul(checked_add(samples, 2, file.path().c_str()), kSizeBytes, file.path().c_str());
  if (file.bytes() < least) {
    raise(ErrorKind::Corruption, "{}: {} bytes, the places of {} samples alone take {}", file.path(),
          with_commas(file.bytes()), with_commas(samples), with_commas(least));
  }
  if (const auto said = load<std::uint32_t>(file.head(kSizeBytes).data()); said != samples) {
    raise(ErrorKind::Corruption, "{}: it says {} samples, its index.json {}", file.path(), with_commas(said),
          with_commas(samples));
  }
  return Scan(file, tokens, samples).run(digest);
}

}  // namespace penstock::layout
