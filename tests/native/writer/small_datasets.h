// SmallDatasets: datasets of a few short shards in a folder in memory, and what lies in their files.
#pragma once

#include "core/io/local/local_store.h"
#include "layout/dataset/folder.h"
#include "layout/dataset/format.h"
#include "tests/native/message_of.h"
#include "tests/native/temporary_folder.h"
#include "writer/shards/dataset_writer.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <string>
#include <vector>

namespace penstock::writer {

inline Bytes bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

class SmallDatasets : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kDocuments = 12;

  /// "compact", "ids": a stream of tokens in this layout; "tokens", "opaque": that mode.
  static WriterOptions options(const std::string& kind = "compact") {
    WriterOptions made;
    const bool is_stream = kind == "compact" || kind == "ids";
    made.format.mode = is_stream ? "stream" : kind;
    if (is_stream) made.format.layout = kind;
    if (kind != "opaque") made.format.schema = Schema::parse(R"([["token","<u2"]])");
    if (kind != "tokens") made.format.codec_json = R"({"name":"raw"})";
    made.shard_bytes = 200;
    return made;
  }
  /// A score, and a plate of three names; and three features.
  static WriterOptions with_columns(WriterOptions made = options()) {
    made.format.columns = {{"score", {'f', 4}, {}}, {"plate", {'i', 4}, {}, true}};
    made.features.emplace();
    made.features->names = {"CD4", "CD8", "FOXP3"};
    return made;
  }

  /// Documents of 9, 18, 27 and 36 records (of 0 as well where the layout has such), whose values depend on `seed`.
  std::string write(const std::string& name, WriterOptions made = options(), unsigned seed = 0) {
    const std::string mode = made.format.mode;
    const bool has_columns = made.format.has_columns();
    const bool may_be_empty = !made.format.is_ids();
    DatasetWriter writer(root_ / name, std::move(made));
    const std::vector<layout::Categories> names{{}, {"one", "two", "three"}};
    for (std::uint64_t i = 0; i < kDocuments; ++i) {
      std::vector<std::uint16_t> tokens(mode == "opaque" ? 0 : may_be_empty && i == 5 ? 0 : (i % 4 + 1) * 9);
      for (auto& token : tokens) token = static_cast<std::uint16_t>(&token - tokens.data() + i * 31 + seed * 1000);
      const std::string entry = std::to_string(i + seed) + std::string(mode == "opaque" ? 60 : i, 'x');
      const float score = static_cast<float>(i);
      const std::int32_t plate = i % 4 == 3 ? -1 : static_cast<std::int32_t>(i % 4);
      NamedValues values;
      if (has_columns) values = {{std::as_bytes(std::span(&score, 1)), std::as_bytes(std::span(&plate, 1))}, names};
      writer.append(std::as_bytes(std::span(tokens)), mode == "tokens" ? std::nullopt : std::optional(bytes_of(entry)),
                    values);
    }
    writer.commit();
    return root_ / name;
  }

  static std::string file(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static void put(const std::string& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }
  /// Bytes of all files, by their names below `path`.
  static std::map<std::string, std::string> contents(const std::string& path) {
    std::map<std::string, std::string> found;
    for (const auto& each : std::filesystem::recursive_directory_iterator(path)) {
      if (each.is_regular_file())
        found[std::filesystem::relative(each.path(), path).string()] = file(each.path().string());
    }
    return found;
  }
  static ino_t inode(const std::string& path) {
    struct stat status {};
    EXPECT_EQ(::stat(path.c_str(), &status), 0) << path;
    return status.st_ino;
  }
  static layout::Manifest manifest(const std::string& path) {
    LocalStore files;
    return layout::read_manifest(files, path);
  }

  /// `make` is stopped after each of its calls of progress in turn and changes nothing at `path`; then it goes through.
  using Tell = std::function<void(std::uint64_t, std::uint64_t)>;
  static void expect_stops_leave(const std::string& path, const std::function<void(const Tell&)>& make) {
    struct Stop {};
    const auto before = contents(path);
    for (std::uint64_t stop_at = 1;; ++stop_at) {
      std::uint64_t calls = 0;
      try {
        make([&](std::uint64_t done, std::uint64_t total) {
          EXPECT_LE(done, total);
          if (++calls == stop_at) throw Stop();
        });
        EXPECT_GT(calls, 1U);
        return;
      } catch (const Stop&) {
        EXPECT_TRUE(contents(path) == before) << "stopped at call " << stop_at;
      }
    }
  }

  const testing::TemporaryFolder root_ = testing::TemporaryFolder::in_memory();
};

}  // namespace penstock::writer
