#include "writer/shuffle/shuffle.h"

#include "tests/native/writer/small_datasets.h"
#include "writer/shuffle/bucket_plan.h"
#include "writer/verify/verify.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace penstock::writer {
namespace {

namespace fs = std::filesystem;

struct Document {
  std::vector<std::uint16_t> tokens;
  std::string entry;
  bool operator==(const Document&) const = default;
};

Bytes records_of(const Document& document) {
  return std::as_bytes(std::span(document.tokens));
}

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
  static WriterOptions writer_options(const std::string& mode, std::uint64_t shard_bytes) {
    WriterOptions made;
    made.format.mode = mode;
    if (mode == "stream") made.format.layout = "compact";
    if (mode != "opaque") made.format.schema = Schema::parse(R"([["token","<u2"]])");
    if (mode != "tokens") made.format.codec_json = R"({"name":"raw"})";
    made.tokenizer_json = R"({"name":"mine"})";
    made.shard_bytes = shard_bytes;
    return made;
  }

  // Documents of 0 to `most` tokens, some without any, one of 20 times as many; entries of 0 to 40 bytes.
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

  std::string write(const std::string& name, const std::vector<Document>& documents, const std::string& mode,
                    std::uint64_t shard_bytes = 1 << 14) {
    DatasetWriter writer(root_ / name, writer_options(mode, shard_bytes));
    for (const Document& each : documents) {
      const Bytes records = mode == "opaque" ? Bytes() : records_of(each);
      writer.append(records, mode == "tokens" ? std::nullopt : std::optional(bytes_of(each.entry)));
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

  // The spans of a stream dataset, in order.
  static std::vector<Document> read(const std::string& path) {
    LocalStore files;
    std::vector<Document> found;
    for (const auto& shard : layout::read_manifest(files, path).shards) {
      const std::string folder = path + "/" + shard.name + "/";
      const std::string stream = file(folder + "stream.bin");
      const std::string data = file(folder + "metadata.bin");
      const std::string index = file(folder + "metadata.index");
      std::vector<layout::CompactIndexEntry> entries(index.size() / sizeof(layout::CompactIndexEntry));
      std::memcpy(entries.data(), index.data(), index.size());
      for (std::size_t i = 0; i + 1 < entries.size(); ++i) {
        Document document;
        document.tokens.resize(entries[i + 1].first_record - entries[i].first_record);
        const std::string tokens = stream.substr(entries[i].first_record * 2, document.tokens.size() * 2);
        if (!tokens.empty()) std::memcpy(document.tokens.data(), tokens.data(), tokens.size());
        document.entry = data.substr(entries[i].byte_offset, entries[i + 1].byte_offset - entries[i].byte_offset);
        found.push_back(std::move(document));
      }
    }
    return found;
  }

  static ShuffleOptions options(std::optional<std::uint64_t> window = std::nullopt,
                                std::uint64_t memory = BucketPlanner::kLeastMemory) {
    ShuffleOptions made;
    made.window = window;
    made.memory_bytes = memory;
    made.shard_bytes = 1 << 14;
    return made;
  }

  std::string run(const std::string& in, const std::string& out, const ShuffleOptions& options, unsigned seed,
                  const TellProgress& progress = {}) {
    shuffle(in, root_ / out, options, by_seed(seed), progress);
    const VerifyReport report = verify(root_ / out, {});
    EXPECT_TRUE(report.ok()) << report.problems.front();
    EXPECT_TRUE(report.notices.empty());
    return root_ / out;
  }

  void expect_refusal(const std::string& in, const ShuffleOptions& options, const std::string& words,
                      ErrorKind kind = ErrorKind::InvalidArgument, const std::string& out = "refused") {
    const std::string said = testing::message_of([&] { shuffle(in, root_ / out, options, by_seed(1), {}); }, kind);
    EXPECT_NE(said.find(words), std::string::npos) << said;
    EXPECT_FALSE(fs::exists(root_ / "refused"));
  }
};

TEST_F(ShuffleTest, DocumentsAreWhatAWriterMakesOfThemInTheNewOrder) {
  for (const std::size_t count : {1U, 2U, 65U, 400U}) {
    for (const char* mode : {"stream", "opaque"}) {
      const auto made = documents(count, 900, 5);
      const std::string in = write("in", made, mode);
      for (const unsigned seed : {0U, 9U}) {
        std::vector<Document> wanted;
        for (const std::uint64_t from : permutation(count, seed)) wanted.push_back(made[from]);
        const std::string expected = write("wanted", wanted, mode);
        const std::string out = run(in, "out", options(), seed);
        EXPECT_EQ(contents(out), contents(expected)) << count << " " << mode;
        fs::remove_all(out);
        fs::remove_all(expected);
      }
      fs::remove_all(in);
    }
  }
}

TEST_F(ShuffleTest, WindowsKeepTheirSpansAndTheRestComesLast) {
  const auto made = documents(300, 700, 6);
  const std::string in = write("in", made, "stream");
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
        const std::size_t part = w == windows
                                     ? each.tokens.size() - done
                                     : std::min<std::uint64_t>(each.tokens.size() - done, (w + 1) * window - at);
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
    // A span that a shard of the input ended in is two there already.
    const std::string out = run(in, "out", options(window, 1 << 20), 3);
    EXPECT_EQ(read(out), wanted) << window;
    LocalStore files;
    const auto shards = layout::read_manifest(files, out).shards;
    for (std::size_t i = 0; i + 1 < shards.size(); ++i) EXPECT_EQ(shards[i].records % window, 0U) << "a window is cut";
    fs::remove_all(out);
  }
}

TEST_F(ShuffleTest, WindowsOfATokenStreamGoAcrossShards) {
  const auto made = documents(300, 900, 7);
  const std::string in = write("in", made, "tokens");
  std::string stream;
  for (const Document& each : made)
    stream.append(reinterpret_cast<const char*>(each.tokens.data()), 2 * each.tokens.size());
  for (const std::uint64_t window : {1U, 100U, 4096U}) {
    const std::uint64_t windows = stream.size() / 2 / window;
    std::string wanted;
    for (const std::uint64_t from : permutation(windows, 4)) wanted += stream.substr(from * window * 2, window * 2);
    wanted += stream.substr(windows * window * 2);
    const std::string out = run(in, "out", options(window, window == 1 ? 4 << 20 : 1 << 17), 4);
    std::string found;
    LocalStore files;
    const auto manifest = layout::read_manifest(files, out);
    for (const auto& shard : manifest.shards) found += file(out + "/" + shard.name + "/stream.bin");
    EXPECT_TRUE(found == wanted) << window;
    EXPECT_GT(manifest.shards.size(), 10U);
    EXPECT_NE(manifest.tokenizer_json.find("mine"), std::string::npos);
    fs::remove_all(out);
  }
}

TEST_F(ShuffleTest, TheBytesDoNotDependOnTheMemory) {
  const std::string in = write("in", documents(300, 900, 8), "stream");
  for (const std::optional<std::uint64_t> window :
       {std::optional<std::uint64_t>(), std::optional<std::uint64_t>(512)}) {
    const auto wanted = contents(run(in, "out", options(window, 64 << 20), 5));
    fs::remove_all(root_ / "out");
    for (const std::uint64_t memory : {BucketPlanner::kLeastMemory, std::uint64_t{90'001}, std::uint64_t{1} << 18}) {
      EXPECT_EQ(contents(run(in, "out", options(window, memory), 5)), wanted) << memory;
      fs::remove_all(root_ / "out");
    }
  }
}

TEST_F(ShuffleTest, ADocumentOrAnEntryLargerThanMemoryPassesThrough) {
  auto made = documents(40, 300, 9);
  made[7].tokens.assign(200'001, 77);
  for (std::size_t i = 0; i < made[7].tokens.size(); ++i) made[7].tokens[i] = static_cast<std::uint16_t>(i * 7);
  made[11].entry.assign(3'000'000, 'e');
  made[20].tokens.assign(1'300'000, 5);
  made[20].entry.assign(100'000, 'f');
  const std::string in = write("in", made, "stream");
  std::vector<Document> wanted;
  for (const std::uint64_t from : permutation(made.size(), 6)) wanted.push_back(made[from]);
  EXPECT_TRUE(read(run(in, "out", options(), 6)) == wanted);
  const auto cut = contents(run(in, "cut", options(50'000, 1 << 16), 6));
  EXPECT_TRUE(cut == contents(run(in, "cut_in_memory", options(50'000, 64 << 20), 6)));
}

TEST_F(ShuffleTest, TooLittleMemoryIsSaidWithWhatIsNeededWhichThenIsEnough) {
  const std::string in = write("in", documents(2000, 900, 10), "stream");
  std::string said;
  try {
    shuffle(in, root_ / "out", options(), by_seed(1), {});
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::InvalidArgument);
    said = error.what();
  }
  ASSERT_NE(said.find("give "), std::string::npos) << said;
  EXPECT_FALSE(fs::exists(root_ / "out"));
  run(in, "out", options(std::nullopt, std::stoull(said.substr(said.find("give ") + 5)) << 20), 1);
  ShuffleOptions little = options();
  little.memory_bytes = 1000;
  expect_refusal(in, little, "memory of 1,000 bytes");
}

TEST_F(ShuffleTest, WhatThereIsNoneOfIsRefused) {
  WriterOptions ids = writer_options("stream", 1 << 14);
  ids.format.layout = "ids";
  {
    DatasetWriter writer(root_ / "ids", ids);
    writer.append(bytes_of(std::string("abcd")), bytes_of(std::string("entry")));
    writer.commit();
  }
  const auto made = documents(10, 30, 1);
  expect_refusal(root_ / "ids", options(), "penstock convert");
  expect_refusal(write("tokens", made, "tokens"), options(), "windows");
  const std::string opaque = write("opaque", made, "opaque");
  expect_refusal(opaque, options(8), "documents");
  const std::string in = write("in", made, "stream");
  expect_refusal(in, options(0), "window is 0");
  expect_refusal(in, options(1 << 20), "longer than the stream");
  expect_refusal(root_ / "nothing", options(), "nothing", ErrorKind::NotFound);
  expect_refusal(in, options(), "published dataset", ErrorKind::InvalidArgument, "opaque");
}

TEST_F(ShuffleTest, ADatasetWithoutDocumentsStaysOne) {
  const std::string in = write("in", {}, "stream");
  EXPECT_EQ(contents(run(in, "out", options(), 1)), contents(in));
}

TEST_F(ShuffleTest, NoDamagedByteGetsANewChecksum) {
  const std::string in = write("in", documents(60, 900, 11), "stream", 1 << 20);
  for (const char* name : {"stream.bin", "metadata.bin", "metadata.index", "stream.bin.crc"}) {
    const std::string path = in + "/00000/" + name;
    const std::string before = file(path);
    std::string damaged = before;
    damaged[damaged.size() / 2] = static_cast<char>(damaged[damaged.size() / 2] ^ 4);
    std::ofstream(path, std::ios::binary) << damaged;
    expect_refusal(in, options(), "do not have their CRC32C", ErrorKind::Corruption);
    std::ofstream(path, std::ios::binary) << before.substr(0, before.size() - 1);
    expect_refusal(in, options(), "bytes, the manifest says", ErrorKind::Corruption);
    std::ofstream(path, std::ios::binary) << before;
  }
  // Whole blocks with their checksums, but not those that the manifest says.
  const std::string other = write("other", documents(60, 900, 12), "stream", 1 << 20);
  auto changed = documents(60, 900, 11);
  changed[5].tokens[0] ^= 1;
  const std::string twin = write("twin", changed, "stream", 1 << 20);
  for (const char* name : {"stream.bin", "stream.bin.crc"}) {
    fs::copy_file(twin + "/00000/" + name, in + "/00000/" + name, fs::copy_options::overwrite_existing);
  }
  expect_refusal(in, options(), "digest of field token", ErrorKind::Corruption);
}

TEST_F(ShuffleTest, WhatWasStoppedAnywhereIsGoneOnWith) {
  const std::string in = write("in", documents(300, 900, 13), "stream");
  for (const std::optional<std::uint64_t> window :
       {std::optional<std::uint64_t>(), std::optional<std::uint64_t>(500)}) {
    ShuffleOptions made = options(window, 1 << 17);
    const std::string whole = run(in, "whole", made, 2);
    const auto wanted = contents(whole);
    LocalStore files;
    const std::size_t shards = layout::read_manifest(files, whole).shards.size();
    ASSERT_GT(shards, 5U);
    made.resume = true;
    for (std::size_t finished = 0; finished <= shards; ++finished) {  // as a run leaves it that is killed
      const std::string out = root_ / "out";
      if (finished != 0) fs::create_directory(out);
      for (std::size_t i = 0; i < finished; ++i) {
        fs::copy(whole + "/" + layout::shard_name(i), out + "/" + layout::shard_name(i), fs::copy_options::recursive);
      }
      if (finished != 0) {
        ShuffleOptions other = made;
        other.order_json = "7";
        expect_refusal(in, other, "other options", ErrorKind::InvalidArgument, "out");
        other = made;
        other.resume = false;
        expect_refusal(in, other, "finished shard", ErrorKind::InvalidArgument, "out");
      }
      EXPECT_EQ(contents(run(in, "out", made, 2)), wanted) << finished;
      fs::remove_all(out);
    }
    const auto before = fs::last_write_time(whole + "/dataset.json");
    run(in, "whole", made, 2);  // is whole already
    EXPECT_EQ(fs::last_write_time(whole + "/dataset.json"), before);
    made.shard_bytes += 1;
    expect_refusal(in, made, "published dataset", ErrorKind::InvalidArgument, "whole");
    made.overwrite = true;
    run(in, "whole", made, 2);
    fs::remove_all(whole);
  }
}

TEST_F(ShuffleTest, ShardsGoElsewhereOneByOneAndThoseThatAreThereAreNotMadeAgain) {
  const std::string in = write("in", documents(300, 900, 13), "stream");
  const std::string whole = run(in, "whole", options(), 2);
  LocalStore files;
  const layout::Manifest manifest = layout::read_manifest(files, whole);
  ASSERT_GT(manifest.shards.size(), 5U);
  const auto wanted = contents(whole);
  const std::string out = root_ / "out";
  const std::string there = root_ / "there";
  ShuffleOptions made = options();
  made.elsewhere = {"s3://bucket/out", {}, false, [&](std::uint64_t number) {
                      const std::string name = "/" + layout::shard_name(number);
                      fs::rename(out + name, there + name);
                    }};
  for (const std::size_t finished : {std::size_t{0}, std::size_t{2}, manifest.shards.size()}) {
    fs::create_directory(there);
    for (std::size_t i = 0; i < finished; ++i) {
      const std::string name = "/" + layout::shard_name(i);
      fs::copy(whole + name, there + name, fs::copy_options::recursive);
      if (made.elsewhere->finished.size() <= i) made.elsewhere->finished.push_back(file(whole + name + "/shard.json"));
    }
    if (finished == 2) {
      ShuffleOptions other = made;
      other.order_json = "7";
      expect_refusal(in, other, "other options", ErrorKind::InvalidArgument, "out");
      other = made;
      other.elsewhere->is_published = true;
      expect_refusal(in, other, "published dataset, made of another input", ErrorKind::InvalidArgument, "out");
    }
    EXPECT_EQ(shuffle(in, out, made, by_seed(2), {}), manifest.fingerprint);
    EXPECT_EQ(std::distance(fs::directory_iterator(out), fs::directory_iterator()), 1);  // dataset.json
    fs::copy(out + "/dataset.json", there + "/dataset.json");
    EXPECT_EQ(contents(there), wanted) << finished;
    fs::remove_all(out);
    fs::remove_all(there);
  }
}

TEST_F(ShuffleTest, AStoppedRunLeavesFinishedShardsAloneAndNothingElse) {
  struct Stop {};
  std::vector<Document> made(100);
  for (std::size_t i = 0; i < made.size(); ++i) made[i].tokens.assign(200'000, static_cast<std::uint16_t>(i));
  const std::string in = write("in", made, "stream", 16 << 20);
  ShuffleOptions chosen = options(std::nullopt, 8 << 20);
  chosen.shard_bytes = 4 << 20;
  for (std::uint64_t stop_at = 1;; ++stop_at) {
    std::uint64_t calls = 0;
    const auto stop = [&](std::uint64_t done, std::uint64_t total) {
      EXPECT_LE(done, total);
      if (++calls == stop_at) throw Stop();
    };
    try {
      shuffle(in, root_ / "out", chosen, by_seed(3), stop);
      break;
    } catch (const Stop&) {
    }
    std::size_t shards = 0;
    if (fs::exists(root_ / "out")) {
      std::vector<std::string> names;
      for (const auto& each : fs::directory_iterator(root_ / "out")) names.push_back(each.path().filename().string());
      std::sort(names.begin(), names.end());
      for (const std::string& name : names) EXPECT_EQ(name, layout::shard_name(shards++)) << stop_at;
      EXPECT_GT(shards, 0U);
    }
    chosen.resume = shards != 0;
  }
  std::vector<Document> wanted;
  for (const std::uint64_t from : permutation(made.size(), 3)) wanted.push_back(made[from]);
  EXPECT_TRUE(read(root_ / "out") == wanted);
  EXPECT_TRUE(verify(root_ / "out", {}).ok());
}

}  // namespace
}  // namespace penstock::writer
