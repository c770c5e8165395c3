// A shuffle in tasks makes the shards of shuffle(), whatever the memory and the parts; what it puts aside is checked.
#include "writer/shuffle/shuffle_tasks.h"

#include "tests/native/writer/small_datasets.h"
#include "writer/shuffle/bucket_plan.h"
#include "writer/shuffle/shuffle.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace penstock::writer {
namespace {

namespace fs = std::filesystem;

MakeDestinations reversed() {
  return [](std::uint64_t size) -> Destinations {
    return [size](std::span<const std::uint64_t> in, std::span<std::uint64_t> out) {
      // A permutation: what is even goes to the end, in reverse.
      std::transform(in.begin(), in.end(), out.begin(),
                     [size](std::uint64_t each) { return each % 2 == 0 ? size - 1 - each / 2 : each / 2; });
    };
  };
}

class ShuffleTasksTest : public SmallDatasets {
 protected:
  ShuffleTasksTest() { fs::create_directory(root_ / "aside"); }

  // Documents of 0 to 900 tokens, one of `longest`, in shards of 16 KiB.
  std::string write(const std::string& name, std::size_t count, std::size_t longest, unsigned seed = 1) const {
    WriterOptions options = SmallDatasets::options();
    options.shard_bytes = 1 << 14;
    DatasetWriter writer(root_ / name, options);
    std::mt19937 random(seed);
    for (std::size_t i = 0; i < count; ++i) {
      std::vector<std::uint16_t> tokens(i == count / 2 ? longest : i % 7 == 3 ? 0 : random() % 900);
      for (auto& token : tokens) token = static_cast<std::uint16_t>(random());
      const std::string entry = std::to_string(i) + std::string(random() % 40, 'x');
      writer.append(std::as_bytes(std::span(tokens)), std::as_bytes(std::span(entry)));
    }
    writer.commit();
    return root_ / name;
  }

  static ShuffleOptions options(std::optional<std::uint64_t> window, std::uint64_t memory,
                                std::uint64_t shard_bytes = 1 << 14) {
    ShuffleOptions made;
    made.window = window;
    made.memory_bytes = memory;
    made.shard_bytes = shard_bytes;
    return made;
  }

  static std::map<std::string, std::string> shards(const std::string& path) {
    auto found = contents(path);
    found.erase(layout::kManifestName);
    return found;
  }

  // Puts everything aside, `shards_each` shards of the input in a file.
  ShuffleWork put_aside(const std::string& in, const ShuffleTasks& planned, const ShuffleOptions& options,
                        std::size_t shards_each) {
    ShuffleWork work{in, options, reversed(), planned.identity, planned.cuts.buckets};
    files_.clear();
    for (std::size_t begin = 0; begin < planned.input_bytes.size(); begin += shards_each) {
      files_.push_back(root_ / "aside/" + std::to_string(begin));
      put_shuffle_aside(work, begin, std::min(begin + shards_each, planned.input_bytes.size()), files_.back(), false,
                        {});
    }
    return work;
  }

  // Makes shards from `first` on, all by one who reads all buckets.
  void make(const ShuffleWork& work, const ShuffleTasks& planned, const std::string& out, std::size_t first = 0) const {
    ShuffledShardsTask task{{}, 0, work.buckets.size(), files_};
    for (std::size_t i = first; i < planned.tasks.size(); ++i) {
      task.shards.push_back({i, planned.tasks[i], planned.cuts.shards[i].range});
    }
    DatasetFolder folder(out, Access::Shard, false);
    make_shuffled_shards(work, task, folder, {});
  }

  std::vector<std::string> files_;
};

TEST_F(ShuffleTasksTest, TheShardsAreThoseOfOneProcessWhateverTheMemoryAndTheParts) {
  const std::string in = write("in", 300, 20'000);
  for (const std::optional<std::uint64_t> window : {std::optional<std::uint64_t>(), std::optional<std::uint64_t>(77)}) {
    for (const std::uint64_t shard_bytes : {2'000, 16'384, 1 << 30}) {
      shuffle(in, root_ / "one", options(window, 64 << 20, shard_bytes), reversed(), {});
      const auto wanted = shards(root_ / "one");
      fs::remove_all(root_ / "one");
      for (const std::uint64_t memory : {std::uint64_t{90'001}, std::uint64_t{1} << 18, std::uint64_t{64} << 20}) {
        const ShuffleOptions given = options(window, memory, shard_bytes);
        const ShuffleTasks planned = plan_shuffle_tasks(in, given, reversed(), {});
        make(put_aside(in, planned, given, memory % 5 + 1), planned, root_ / "many");
        EXPECT_TRUE(shards(root_ / "many") == wanted) << memory << " " << shard_bytes;
        fs::remove_all(root_ / "many");
      }
    }
  }
}

TEST_F(ShuffleTasksTest, BucketsAreShardsOrPartsOfThemOrSeveralWholeOnes) {
  const std::string in = write("in", 2000, 900);
  const auto ends_of_shards = [](const ShuffleTasks& planned) {
    std::vector<std::uint64_t> ends;
    for (const auto& each : planned.cuts.shards) ends.push_back(each.range.end);
    return ends;
  };
  const auto crossed = [&](const ShuffleTasks& planned) {
    const auto ends = ends_of_shards(planned);
    std::size_t count = 0;
    for (const BucketRange& each : planned.cuts.buckets) {
      const auto within = std::count_if(ends.begin(), ends.end(),
                                        [&](std::uint64_t end) { return end > each.begin && end < each.end; });
      count += within != 0 ? 1 : 0;
      EXPECT_TRUE(within == 0 || std::count(ends.begin(), ends.end(), each.end) == 1);
    }
    return count;
  };
  const auto plan = [&](std::uint64_t memory, std::uint64_t shard_bytes) {
    return plan_shuffle_tasks(in, options(std::nullopt, memory, shard_bytes), reversed(), {});
  };
  const ShuffleTasks alike = plan(64 << 20, 20'000);
  EXPECT_EQ(alike.cuts.buckets.size(), alike.cuts.shards.size());
  const ShuffleTasks parts = plan(1 << 18, 1 << 20);
  EXPECT_GT(parts.cuts.buckets.size(), parts.cuts.shards.size());
  EXPECT_EQ(crossed(parts), 0U);
  const ShuffleTasks together = plan(1 << 18, 10'000);
  EXPECT_LT(together.cuts.buckets.size(), together.cuts.shards.size());
  EXPECT_GT(crossed(together), 2U);
}

TEST_F(ShuffleTasksTest, ShardsThatAreThereAreLeftOut) {
  const std::string in = write("in", 300, 20'000);
  const ShuffleOptions given = options(std::nullopt, 90'001, 8'000);
  shuffle(in, root_ / "one", given, reversed(), {});
  const ShuffleTasks planned = plan_shuffle_tasks(in, given, reversed(), {});
  make(put_aside(in, planned, given, 2), planned, root_ / "many", 5);
  auto wanted = shards(root_ / "one");
  std::erase_if(wanted, [](const auto& each) { return each.first < "00005"; });
  EXPECT_TRUE(shards(root_ / "many") == wanted);
}

TEST_F(ShuffleTasksTest, AChangedByteOfWhatWasPutAsideIsSeen) {
  const std::string in = write("in", 100, 60'000);
  const ShuffleOptions given = options(std::nullopt, 90'001);
  const ShuffleTasks planned = plan_shuffle_tasks(in, given, reversed(), {});
  const ShuffleWork work = put_aside(in, planned, given, 3);
  for (const std::string& path : files_) {
    const auto size = static_cast<std::streamoff>(fs::file_size(path));
    for (const std::streamoff at : {std::streamoff{20}, size / 2, size - 1}) {
      std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
      file.seekg(at);
      const char before = static_cast<char>(file.get());
      file.seekp(at);
      file.put(static_cast<char>(before ^ 4));
      file.flush();
      const std::string said = testing::message_of([&] { make(work, planned, root_ / "many"); }, ErrorKind::Corruption);
      EXPECT_NE(said.find("what was read back is not what was written"), std::string::npos) << path << " " << at;
      file.seekp(at);
      file.put(before);
      fs::remove_all(root_ / "many");
    }
  }
}

TEST_F(ShuffleTasksTest, AnotherDatasetThanThatOfThePlanIsRefused) {
  const std::string in = write("in", 100, 900);
  const ShuffleOptions given = options(std::nullopt, 1 << 18);
  const ShuffleTasks planned = plan_shuffle_tasks(in, given, reversed(), {});
  const ShuffleWork work = put_aside(in, planned, given, 3);
  fs::remove_all(in);
  write("in", 100, 900, 2);
  const auto expect_refused = [](const auto& call) {
    const std::string said = testing::message_of(call, ErrorKind::Corruption);
    EXPECT_NE(said.find("not the dataset any more"), std::string::npos) << said;
  };
  expect_refused([&] { put_shuffle_aside(work, 0, 1, root_ / "aside/x", false, {}); });
  expect_refused([&] { make(work, planned, root_ / "many"); });
  EXPECT_FALSE(fs::exists(root_ / "aside/x"));
}

}  // namespace
}  // namespace penstock::writer
