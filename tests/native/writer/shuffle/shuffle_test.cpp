// A shuffle in one process and in tasks: the same bytes, whatever the memory; what is damaged, stopped or changed is
// seen.
#include "writer/shuffle/shuffle.h"

#include "tests/native/writer/small_datasets.h"
#include "writer/shuffle/bucket_plan.h"
#include "writer/shuffle/shuffle_tasks.h"
#include "writer/verify/verify.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>

namespace penstock::writer {
namespace {

namespace fs = std::filesystem;
using Window = std::optional<std::uint64_t>;

struct Document {
  std::vector<std::uint16_t> tokens;
  std::string entry;
  bool operator==(const Document&) const = default;
};

std::vector<std::uint64_t> permutation(std::uint64_t size, unsigned seed) {
  std::vector<std::uint64_t> forward(size);
  std::iota(forward.begin(), forward.end(), 0);
  std::mt19937 random(seed);
  std::shuffle(forward.begin(), forward.end(), random);
  return forward;
}

// The inverse of permutation(size, seed): observation forward[i] goes to i.
MakeDestinations by_seed(unsigned seed) {
  return [seed](std::uint64_t size) -> Destinations {
    std::vector<std::uint64_t> inverse(size);
    const auto forward = permutation(size, seed);
    for (std::uint64_t i = 0; i < size; ++i) inverse[forward[i]] = i;
    return [inverse](std::span<const std::uint64_t> in, std::span<std::uint64_t> out) {
      std::transform(in.begin(), in.end(), out.begin(), [&](std::uint64_t each) { return inverse[each]; });
    };
  };
}

class ShuffleTest : public SmallDatasets {
 protected:
  static ShuffleOptions options(Window window = std::nullopt, std::uint64_t memory = BucketPlanner::kLeastMemory,
                                std::uint64_t shard_bytes = 1 << 14) {
    ShuffleOptions made;
    made.window = window;
    made.memory_bytes = memory;
    made.shard_bytes = shard_bytes;
    return made;
  }

  // Documents of 0 to `most` tokens, some without any, one of up to 20 times as many; entries of 0 to 40 bytes.
  static std::vector<Document> documents(std::size_t count, std::size_t most, unsigned seed) {
    std::mt19937 random(seed);
    std::vector<Document> made(count);
    for (std::size_t i = 0; i < count; ++i) {
      made[i].tokens.resize(i % 7 == 3 ? 0 : random() % (i == count / 2 ? 20 * most : most));
      for (auto& token : made[i].tokens) token = static_cast<std::uint16_t>(random());
      made[i].entry = std::to_string(i) + std::string(random() % 40, 'x');
    }
    return made;
  }
  static std::vector<Document> shuffled(const std::vector<Document>& documents, unsigned seed) {
    std::vector<Document> found;
    for (const std::uint64_t from : permutation(documents.size(), seed)) found.push_back(documents[from]);
    return found;
  }

  std::string write(const std::string& name, const std::vector<Document>& documents,
                    const std::string& kind = "compact", std::uint64_t shard_bytes = 1 << 14) {
    WriterOptions made = SmallDatasets::options(kind);
    made.tokenizer_json = R"({"name":"mine"})";
    made.shard_bytes = shard_bytes;
    fs::remove_all(root_ / name);
    DatasetWriter writer(root_ / name, made);
    for (const Document& each : documents) {
      writer.append(kind == "opaque" ? Bytes() : std::as_bytes(std::span(each.tokens)),
                    kind == "tokens" ? std::nullopt : std::optional(bytes_of(each.entry)));
    }
    writer.commit();
    return root_ / name;
  }

  // All bytes of the files of a dataset's shards, by name; without shard.json, which has the task.
  static std::map<std::string, std::string> contents(const std::string& path) {
    auto found = SmallDatasets::contents(path);
    std::erase_if(found, [](const auto& each) { return each.first.ends_with("shard.json"); });
    return found;
  }
  // With the tasks, but without the manifest.
  static std::map<std::string, std::string> shards(const std::string& path) {
    auto found = SmallDatasets::contents(path);
    found.erase(layout::kManifestName);
    return found;
  }

  // The spans of a stream dataset, in order.
  static std::vector<Document> read(const std::string& path) {
    std::vector<Document> found;
    for (const auto& shard : manifest(path).shards) {
      const std::string folder = path + "/" + shard.name + "/";
      const std::string stream = file(folder + "stream.bin");
      const std::string data = file(folder + "metadata.bin");
      const std::string index = file(folder + "metadata.index");
      std::vector<layout::CompactIndexEntry> entries(index.size() / sizeof(layout::CompactIndexEntry));
      std::memcpy(entries.data(), index.data(), index.size());
      for (std::size_t i = 0; i + 1 < entries.size(); ++i) {
        Document& document = found.emplace_back();
        document.tokens.resize(entries[i + 1].first_record - entries[i].first_record);
        stream.copy(reinterpret_cast<char*>(document.tokens.data()), document.tokens.size() * 2,
                    entries[i].first_record * 2);
        document.entry = data.substr(entries[i].byte_offset, entries[i + 1].byte_offset - entries[i].byte_offset);
      }
    }
    return found;
  }

  // Shuffles into a new folder, unless it is to go on.
  std::string run(const std::string& in, const std::string& out, const ShuffleOptions& options, unsigned seed) {
    if (!options.resume && !options.overwrite) fs::remove_all(root_ / out);
    shuffle(in, root_ / out, options, by_seed(seed), {});
    const VerifyReport report = verify(root_ / out, {});
    EXPECT_TRUE(report.ok()) << report.problems.front();
    EXPECT_TRUE(report.notices.empty());
    return root_ / out;
  }

  void expect_refusal(const std::string& in, const ShuffleOptions& options, const std::string& words,
                      ErrorKind kind = ErrorKind::InvalidArgument, const std::string& out = "refused") {
    testing::expect_error([&] { shuffle(in, root_ / out, options, by_seed(1), {}); }, kind, words);
    EXPECT_FALSE(fs::exists(root_ / "refused"));
  }

  // Puts everything aside, `shards_each` shards of the input in a file.
  ShuffleWork put_aside(const std::string& in, const ShuffleTasks& planned, const ShuffleOptions& options,
                        std::size_t shards_each) {
    ShuffleWork work{in, options, by_seed(1), planned.identity, planned.cuts.buckets};
    fs::create_directories(root_ / "aside");
    files_.clear();
    for (std::size_t begin = 0; begin < planned.input_bytes.size(); begin += shards_each) {
      files_.push_back(root_ / "aside/" + std::to_string(begin));
      put_shuffle_aside(work, begin, std::min(begin + shards_each, planned.input_bytes.size()), files_.back(), false,
                        {});
    }
    return work;
  }

  // Makes shards from `first` on, all by one who reads all buckets; returns them.
  std::map<std::string, std::string> make(const ShuffleWork& work, const ShuffleTasks& planned,
                                          std::size_t first = 0) const {
    fs::remove_all(root_ / "many");
    ShuffledShardsTask task{{}, 0, work.buckets.size(), files_};
    for (std::size_t i = first; i < planned.tasks.size(); ++i) {
      task.shards.push_back({i, planned.tasks[i], planned.cuts.shards[i].range});
    }
    {
      DatasetFolder folder(root_ / "many", Access::Shard, false);
      make_shuffled_shards(work, task, folder, {});
    }
    return shards(root_ / "many");
  }

  std::vector<std::string> files_;
};

TEST_F(ShuffleTest, DocumentsAreWhatAWriterMakesOfThemInTheNewOrderWhateverTheMemory) {
  for (const std::size_t count : {0U, 1U, 2U, 65U, 300U}) {
    for (const char* kind : {"compact", "opaque"}) {
      const auto made = documents(count, 900, 5);
      const std::string in = write("in", made, kind);
      const auto wanted = contents(write("wanted", shuffled(made, 9), kind));
      for (const std::uint64_t memory : {BucketPlanner::kLeastMemory, std::uint64_t{90'001}, std::uint64_t{64} << 20}) {
        EXPECT_TRUE(contents(run(in, "out", options(std::nullopt, memory), 9)) == wanted) << count << " " << kind;
      }
    }
  }
}

TEST_F(ShuffleTest, WindowsKeepTheirSpansAndTheRestComesLast) {
  const auto made = documents(300, 700, 6);
  const std::string in = write("in", made);
  std::uint64_t records = 0;
  for (const Document& each : made) records += each.tokens.size();
  for (const std::uint64_t window : {std::uint64_t{1000}, std::uint64_t{37}, records - 5, records}) {
    // By hand: the spans of each window, a document without records in the one that it lies in.
    const std::uint64_t windows = records / window;
    std::vector<std::vector<Document>> cut(windows + 1);
    std::uint64_t at = 0;
    for (const Document& each : made) {
      std::size_t done = 0;
      do {
        const std::uint64_t w = std::min(at / window, windows);
        const std::uint64_t left = each.tokens.size() - done;
        const std::uint64_t part = w == windows ? left : std::min(left, (w + 1) * window - at);
        const auto begin = each.tokens.begin() + static_cast<std::ptrdiff_t>(done);
        cut[w].push_back({{begin, begin + static_cast<std::ptrdiff_t>(part)}, each.entry});
        done += part;
        at += part;
      } while (done < each.tokens.size());
    }
    std::vector<Document> wanted;
    for (const std::uint64_t from : permutation(windows, 3)) {
      wanted.insert(wanted.end(), cut[from].begin(), cut[from].end());
    }
    wanted.insert(wanted.end(), cut[windows].begin(), cut[windows].end());
    const std::string out = run(in, "out", options(window, 1 << 20), 3);
    EXPECT_TRUE(read(out) == wanted) << window;
    EXPECT_NE(manifest(out).tokenizer_json.find("mine"), std::string::npos);
    const auto shards = manifest(out).shards;
    for (std::size_t i = 0; i + 1 < shards.size(); ++i) EXPECT_EQ(shards[i].records % window, 0U) << "a window is cut";
  }
}

TEST_F(ShuffleTest, ADocumentOrAnEntryLargerThanMemoryPassesThrough) {
  auto made = documents(40, 300, 9);
  made[7].tokens.resize(200'001);
  std::iota(made[7].tokens.begin(), made[7].tokens.end(), std::uint16_t{7});
  made[11].entry.assign(3'000'000, 'e');
  made[20] = {std::vector<std::uint16_t>(1'300'000, 5), std::string(100'000, 'f')};
  const std::string in = write("in", made);
  EXPECT_TRUE(read(run(in, "out", options(), 6)) == shuffled(made, 6));
  const auto cut = contents(run(in, "cut", options(50'000, 1 << 16), 6));
  EXPECT_TRUE(cut == contents(run(in, "cut", options(50'000, 64 << 20), 6)));
}

TEST_F(ShuffleTest, TooLittleMemoryIsSaidWithWhatIsNeededWhichThenIsEnough) {
  const std::string in = write("in", documents(2000, 900, 10));
  const std::string said =
      testing::message_of([&] { shuffle(in, root_ / "out", options(), by_seed(1), {}); }, ErrorKind::InvalidArgument);
  ASSERT_NE(said.find("give "), std::string::npos) << said;
  EXPECT_FALSE(fs::exists(root_ / "out"));
  run(in, "out", options(std::nullopt, std::stoull(said.substr(said.find("give ") + 5)) << 20), 1);
  expect_refusal(in, options(std::nullopt, 1000), "memory of 1,000 bytes");
}

TEST_F(ShuffleTest, WhatThereIsNoneOfIsRefused) {
  const auto made = documents(10, 30, 1);
  const std::string in = write("in", made);
  const std::string opaque = write("opaque", made, "opaque");
  expect_refusal(opaque, options(8), "documents");
  expect_refusal(root_ / "nothing", options(), "nothing", ErrorKind::NotFound);
  expect_refusal(in, options(), "published dataset", ErrorKind::InvalidArgument, "opaque");
}

TEST_F(ShuffleTest, NoDamagedByteGetsANewChecksum) {
  auto made = documents(60, 900, 11);
  const std::string in = write("in", made, "compact", 1 << 20);
  for (const char* name : {"stream.bin", "metadata.bin", "metadata.index", "stream.bin.crc"}) {
    const std::string path = in + "/00000/" + name;
    const std::string before = file(path);
    std::string damaged = before;
    damaged[damaged.size() / 2] = static_cast<char>(damaged[damaged.size() / 2] ^ 4);
    put(path, damaged);
    expect_refusal(in, options(), "do not have their CRC32C", ErrorKind::Corruption);
    put(path, before.substr(0, before.size() - 1));
    expect_refusal(in, options(), "bytes, the manifest says", ErrorKind::Corruption);
    put(path, before);
  }
  // Whole blocks with their checksums, but not those that the manifest says.
  made[5].tokens[0] ^= 1;
  const std::string twin = write("twin", made, "compact", 1 << 20);
  for (const char* name : {"/00000/stream.bin", "/00000/stream.bin.crc"}) put(in + name, file(twin + name));
  expect_refusal(in, options(), "digest of field token", ErrorKind::Corruption);
}

TEST_F(ShuffleTest, WhatWasStoppedAnywhereIsGoneOnWith) {
  const std::string in = write("in", documents(300, 900, 13));
  for (const Window& window : {Window(), Window(500)}) {
    ShuffleOptions made = options(window, 1 << 17);
    const std::string whole = run(in, "whole", made, 2);
    const auto wanted = contents(whole);
    const std::size_t shards = manifest(whole).shards.size();
    ASSERT_GT(shards, 5U);
    for (std::size_t finished = 0; finished <= shards; ++finished) {  // as a run leaves it that is killed
      const std::string out = root_ / "out";
      fs::remove_all(out);
      if (finished != 0) fs::create_directory(out);
      for (std::size_t i = 0; i < finished; ++i) {
        fs::copy(whole + "/" + layout::shard_name(i), out + "/" + layout::shard_name(i), fs::copy_options::recursive);
      }
      made.resume = true;
      if (finished != 0) {
        ShuffleOptions other = made;
        other.order_json = "7";
        expect_refusal(in, other, "other options", ErrorKind::InvalidArgument, "out");
        other = made;
        other.resume = false;
        expect_refusal(in, other, "finished shard", ErrorKind::InvalidArgument, "out");
      }
      EXPECT_EQ(contents(run(in, "out", made, 2)), wanted) << finished;
    }
    const auto before = fs::last_write_time(whole + "/dataset.json");
    run(in, "whole", made, 2);  // is whole already
    EXPECT_EQ(fs::last_write_time(whole + "/dataset.json"), before);
    made.shard_bytes += 1;
    expect_refusal(in, made, "published dataset", ErrorKind::InvalidArgument, "whole");
    made.overwrite = true;
    run(in, "whole", made, 2);
  }
}

// ---- in tasks

TEST_F(ShuffleTest, TasksMakeTheShardsOfOneProcessWhateverTheMemoryAndThePartsAndLeaveOutThoseThatAreThere) {
  const std::string in = write("in", documents(300, 900, 1));
  for (const Window& window : {Window(), Window(77)}) {
    for (const std::uint64_t shard_bytes : {2'000, 16'384, 1 << 30}) {
      const auto wanted = shards(run(in, "one", options(window, 64 << 20, shard_bytes), 1));
      for (const std::uint64_t memory : {std::uint64_t{90'001}, std::uint64_t{1} << 18, std::uint64_t{64} << 20}) {
        const ShuffleOptions given = options(window, memory, shard_bytes);
        const ShuffleTasks planned = plan_shuffle_tasks(in, given, by_seed(1), {});
        const ShuffleWork work = put_aside(in, planned, given, memory % 5 + 1);
        EXPECT_TRUE(make(work, planned) == wanted) << memory << " " << shard_bytes;
        if (planned.tasks.size() < 6) continue;
        auto rest = wanted;
        std::erase_if(rest, [](const auto& each) { return each.first < "00005"; });
        EXPECT_TRUE(make(work, planned, 5) == rest) << memory << " " << shard_bytes;
      }
    }
  }
}

TEST_F(ShuffleTest, AChangedByteOfWhatTasksPutAsideOrAnotherDatasetIsSeen) {
  const std::string in = write("in", documents(100, 3'000, 1));
  const ShuffleOptions given = options(std::nullopt, 90'001);
  const ShuffleTasks planned = plan_shuffle_tasks(in, given, by_seed(1), {});
  const ShuffleWork work = put_aside(in, planned, given, 3);
  for (const std::string& path : files_) {
    const std::string before = file(path);
    for (const std::size_t at : {std::size_t{20}, before.size() / 2, before.size() - 1}) {
      std::string damaged = before;
      damaged[at] = static_cast<char>(damaged[at] ^ 4);
      put(path, damaged);
      testing::expect_error([&] { make(work, planned); }, ErrorKind::Corruption,
                            "what was read back is not what was written");
    }
    put(path, before);
  }
  write("in", documents(100, 3'000, 2));
  testing::expect_error([&] { put_shuffle_aside(work, 0, 1, root_ / "aside/x", false, {}); }, ErrorKind::Corruption,
                        "not the dataset any more");
  testing::expect_error([&] { make(work, planned); }, ErrorKind::Corruption, "not the dataset any more");
  EXPECT_FALSE(fs::exists(root_ / "aside/x"));
}

}  // namespace
}  // namespace penstock::writer
