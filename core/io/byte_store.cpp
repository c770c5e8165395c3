#include "core/io/byte_store.h"

#include "core/base/error.h"

namespace penstock {

std::string read_whole(ByteStore& store, const std::string& path, std::uint64_t max_bytes, Links links) {
  const std::uint64_t bytes = store.size(path, links);
  if (bytes > max_bytes) {
    raise(ErrorKind::Corruption, "{}: {} bytes, at most {} can be", path, with_commas(bytes), with_commas(max_bytes));
  }
  std::string text(bytes, '\0');
  store.read_small(path, 0, std::as_writable_bytes(std::span(text)));
  return text;
}

}  // namespace penstock
