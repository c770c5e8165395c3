#include "text/digested.h"

#include "core/base/error.h"

#include <fmt/format.h>

#include <algorithm>

namespace penstock::text {
namespace {

std::string_view known_of(const Pieces& known, std::size_t i) {
  return known.ends.empty() ? std::string_view() : known[i];
}

}  // namespace

void check_pieces(const Pieces& pieces, const char* what) {
  const std::size_t count = pieces.ends.size();
  if (!pieces.begins.empty() && pieces.begins.size() != count) {
    raise(ErrorKind::InvalidArgument, "{}: {} begins and {} ends", what, pieces.begins.size(), count);
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (pieces.begin(i) > pieces.ends[i] || pieces.ends[i] > pieces.bytes.size()) {
      raise(ErrorKind::InvalidArgument, "{} {}: bytes {} to {} of {}", what, i, pieces.begin(i), pieces.ends[i],
            pieces.bytes.size());
    }
  }
}

std::uint64_t digested_bytes(const Pieces& documents, const Pieces& known) {
  check_pieces(documents, "document");
  check_pieces(known, "metadata");
  const std::size_t count = documents.ends.size();
  if (!known.ends.empty() && known.ends.size() != count) {
    raise(ErrorKind::InvalidArgument, "metadata of {} documents, there are {}", known.ends.size(), count);
  }
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t size = documents[i].size();
    const std::size_t known_size = known_of(known, i).size();
    bytes += fmt::format_int(size).size() + fmt::format_int(known_size).size() + 2 + size + known_size;
  }
  return bytes;
}

void write_digested(const Pieces& documents, const Pieces& known, char* out) {
  const auto put = [&out](std::string_view bytes) { out = std::copy(bytes.begin(), bytes.end(), out); };
  const auto put_number = [&put](std::size_t number) {
    const fmt::format_int digits(number);
    put({digits.data(), digits.size()});
  };
  for (std::size_t i = 0; i < documents.ends.size(); ++i) {
    const std::string_view said = known_of(known, i);
    put_number(documents[i].size());
    *out++ = ',';
    put_number(said.size());
    *out++ = ':';
    put(documents[i]);
    put(said);
  }
}

}  // namespace penstock::text
