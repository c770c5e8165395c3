// What tens of thousands of shards cost when they are opened, in allocations and bytes: an executable of its own, since
// it counts what operator new is asked for.
#include "layout/dataset.h"
#include "layout/dataset/format.h"
#include "layout/dataset/manifest.h"
#include "tests/native/layout/drive.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <new>

namespace {
std::atomic<std::uint64_t> allocations{0};
std::atomic<std::uint64_t> allocated_bytes{0};

void* allocate(std::size_t size) {
  ++allocations;
  allocated_bytes += size;
  return std::malloc(size);
}
}  // namespace

// Not inlined: g++ would take each half for a mismatch of the other.
[[gnu::noinline]] void* operator new(std::size_t size) {
  if (void* const memory = allocate(size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t& /*tag*/) noexcept {
  return allocate(size);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t /*size*/) noexcept {
  std::free(memory);
}

namespace penstock::layout {
namespace {

class ManyShards : public ::testing::Test {
 protected:
  ManyShards() : path_(::testing::TempDir() + "penstock_many_" + std::to_string(::getpid())) {
    std::filesystem::create_directories(path_);
  }
  ~ManyShards() override { std::filesystem::remove_all(path_); }

  // Writes the manifest alone; returns its size.
  std::size_t write(std::uint64_t shards) {
    Manifest made;
    made.format = {"stream", "compact", Schema::parse(R"([["token","<u4"]])"), R"({"name":"json"})"};
    for (std::uint64_t i = 0; i < shards; ++i) {
      made.shards.push_back({shard_name(i), 250'000'000 + i, 2, 2, 7, {DigestBytes{}}, DigestBytes{}});
    }
    const std::string text = write_manifest(made);
    std::ofstream(path_ + "/dataset.json", std::ios::binary) << text;
    return text.size();
  }

  struct Cost {
    std::uint64_t allocations;
    std::uint64_t bytes;
  };
  Cost open_and_view() {
    const Cost before{allocations, allocated_bytes};
    const DatasetPtr dataset = open_dataset(penstock::testing::local(path_));
    const auto windows = make_windows(dataset, 4096, 1);
    const auto documents = make_documents(dataset);
    windows->info().keeps->grant(1U << 30);
    EXPECT_EQ(documents->info().size, 2 * dataset->shards.size());
    return {allocations - before.allocations, allocated_bytes - before.bytes};
  }

  std::string path_;
};

TEST_F(ManyShards, OpeningAllocatesAsOftenAsForAFew) {
  write(4);
  const Cost few = open_and_view();
  write(40'000);
  const Cost many = open_and_view();
  EXPECT_LT(many.allocations, few.allocations + 200);  // tables that grow; nothing for each shard
}

TEST_F(ManyShards, OpeningTakesAFewBytesForEachOfTheManifest) {
  const std::size_t text = write(40'000);
  // Text, simdjson's index (of which a quarter is touched) and its room for strings; then two tables of shards.
  EXPECT_LT(open_and_view().bytes, 8 * text + 40'000 * 800);
}

}  // namespace
}  // namespace penstock::layout
