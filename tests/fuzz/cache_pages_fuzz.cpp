// Any bytes as what a cache has kept of a file: check values of its three pages, then their bytes; or as the note
// beside them. What is read is the file's bytes, or bytes that have the check value that is kept of their page.
#include "core/base/crc32c.h"
#include "core/io/cache/cached_store.h"
#include "tests/fuzz/read_views.h"
#include "tests/native/temporary_folder.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>

namespace penstock::fuzz {
namespace {

constexpr std::uint64_t kPages = 3;
constexpr std::uint64_t kBytes = (kPages - 1) * kCachePage + 1000;
constexpr const char* kPath = "corpus/stream.bin";

void write_file(const std::string& path, Input bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  require(file.good(), "no room for the cache's files");
}

std::string content() {
  std::string bytes(kBytes, '\0');
  for (std::uint64_t i = 0; i < kBytes; ++i) bytes[i] = static_cast<char>(i * 131 + i / 251);
  return bytes;
}

// Of bytes and the beginning of others; quicker than std::equal under sanitizers.
bool is_same(Input bytes, Input others) {
  return std::memcmp(bytes.data(), others.data(), bytes.size()) == 0;
}

struct Kept {
  Input sums;
  Input data;

  [[nodiscard]] bool may_give(std::uint64_t page, Input bytes) const {
    if (sums.size() < 4 * (page + 1) || data.size() < page * kCachePage + bytes.size()) return false;
    std::uint32_t sum = 0;
    std::memcpy(&sum, sums.data() + 4 * page, 4);
    return sum != 0 && sum == crc32c(bytes) && is_same(bytes, data.subspan(page * kCachePage));
  }
};

std::vector<std::byte> read_whole(CachedStore& store) {
  const File file(kPath, kBytes, &store);
  std::vector<std::byte> bytes(kBytes);
  Read read;
  read.file = &file;
  read.size = kBytes;
  read.destination = bytes.data();
  Read* const pointer = &read;
  const std::unique_ptr<Channel> channel = store.open_channel(ChannelMode::MayWait);
  channel->submit({&pointer, 1});
  Read* done = nullptr;
  for (int i = 0; done == nullptr; ++i) {
    require(i < 100, "a read of the cache does not end");
    channel->wait({&done, 1}, std::chrono::milliseconds(100));
  }
  require(read.outcome == Outcome::Done && !read.error, "a cache's damage is an error");
  return bytes;
}

}  // namespace

bool cache_pages(Input input) {
  static const testing::TemporaryFolder folder = testing::TemporaryFolder::in_memory();
  static const std::string written = content();
  static const auto local = std::make_shared<LocalStore>(4);  // all of its descriptors are looked at for each input
  const bool is_note = take_choice(input, 2) == 1;
  const auto behind = std::make_shared<testing::MemoryStore>();
  put(*behind, kPath, written);
  const CacheFolder place(folder.path(), "corpus", "1");
  place.create();
  const std::string name = place.path() + "/" + place.name_of(kPath);
  Kept kept{input.first(std::min<std::size_t>(input.size(), 4 * kPages)), {}};
  kept.data = input.subspan(kept.sums.size());
  if (is_note) {
    kept = {};
    write_file(place.path() + "/about.json", input);
  } else {
    (void)::unlink((place.path() + "/about.json").c_str());
  }
  write_file(name + ".crc", kept.sums);
  write_file(name + ".data", kept.data);
  CachedStore store(behind, local, folder.path());
  store.keep(std::array{CachedStore::Content{"corpus", "1"}}, std::array{CacheableFile{kPath, kBytes}}, 1 << 20);
  bool some = false;
  for (int round = 0; round < 2; ++round) {
    const std::vector<std::byte> bytes = read_whole(store);
    some |= round == 0 && store.counts().hits > 0;
    for (std::uint64_t page = 0; page < kPages; ++page) {
      const std::uint64_t begin = page * kCachePage;
      const Input found = Input(bytes).subspan(begin, std::min(kCachePage, kBytes - begin));
      const bool is_right = is_same(found, std::as_bytes(std::span(written)).subspan(begin));
      require(is_right || kept.may_give(page, found), "a page that neither is the file's nor was kept with its sum");
    }
  }
  return some;
}

}  // namespace penstock::fuzz
