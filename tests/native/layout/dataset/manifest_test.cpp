#include "layout/dataset/manifest.h"

#include "core/base/error.h"
#include "layout/dataset/digest.h"
#include "layout/dataset/format.h"
#include "layout/dataset/sealed_json.h"
#include "tests/native/message_of.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <random>

namespace penstock::layout {
namespace {

constexpr const char* kDigest = "0123456789abcdef0123456789abcdef";
const DigestBytes kDigestBytes = parse_digest(kDigest).value();

Manifest make(const std::string& layout = "compact") {
  Manifest manifest;
  manifest.format = {"stream", layout, Schema::parse(R"([["token","<u2"],["b","<f4"]])"), R"({"name":"json"})"};
  manifest.tokenizer_json = R"({"name":"t"})";
  manifest.shards.push_back({"00000", 5000, 3, 3, 77, {kDigestBytes, kDigestBytes}, kDigestBytes});
  manifest.shards.push_back({"00001", 0, 0, 0, 0, {kDigestBytes, kDigestBytes}, kDigestBytes});
  return manifest;
}

// The text with its seal made right again after `from` became `to`.
std::string edited(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
  return seal_json(text.substr(0, text.rfind("\n  \"crc32c\"")));
}

void expect_refused(const std::string& text, const std::string& words, ErrorKind kind = ErrorKind::Corruption) {
  testing::expect_error([&] { parse_manifest(text, "d/dataset.json"); }, kind, words);
  testing::expect_error([&] { parse_manifest(text, "d/dataset.json"); }, kind, "dataset.json");
}

TEST(Manifest, WhatIsWrittenIsReadAgain) {
  for (const char* layout : {"compact", "ids"}) {
    const std::string text = write_manifest(make(layout));
    const Manifest read = parse_manifest(text, "d");
    EXPECT_EQ(write_manifest(read), text);
    EXPECT_EQ(read.shards[0].data_bytes, 77U);
    EXPECT_EQ(read.fingerprint, fingerprint_of(read.format, read.shards));
  }
}

TEST(Manifest, EveryCutAndEveryFlippedBitIsRefused) {
  const std::string text = write_manifest(make());
  for (std::size_t size = 0; size < text.size(); ++size) {
    EXPECT_THROW(parse_manifest(text.substr(0, size), "d"), Error) << size;
  }
  for (std::size_t bit = 0; bit < text.size() * 8; ++bit) {
    std::string flipped = text;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_THROW(parse_manifest(flipped, "d"), Error) << bit;
  }
}

TEST(Manifest, DamageUnderARightSealNeverCrashes) {
  // What an attacker could do: any bytes, with the seal made right.
  const std::string text = write_manifest(make());
  std::mt19937 random(3);
  for (int i = 0; i < 10000; ++i) {
    std::string body = text.substr(0, text.rfind("\n  \"crc32c\""));
    for (int k = 0; k <= i % 3; ++k) body[random() % body.size()] = static_cast<char>(random());
    try {
      parse_manifest(seal_json(body), "d");
    } catch (const Error&) {
    }
  }
}

TEST(Manifest, RefusesWhatCannotBe) {
  const std::string text = write_manifest(make());
  expect_refused("", "an empty file");
  expect_refused("{}", "crc32c");
  expect_refused(edited(text, "\"version\": 1", "\"version\": 3"), "version 3", ErrorKind::InvalidArgument);
  expect_refused(edited(text, "\"penstock\"", "\"litdata\""), "format");
  expect_refused(edited(text, "little", "big"), "byte_order");
  expect_refused(edited(text, "\"mode\": \"stream\"", "\"mode\": \"tokens\""), "layout");
  expect_refused(edited(text, "\"mode\": \"stream\",", "\"mode\": \"stream\", \"mode\": \"stream\","), "mode");
  expect_refused(edited(text, "<u2", "|O8"), "kind");
  expect_refused(edited(text, "<u2", ">u2"), "big-endian");
  expect_refused(edited(text, "<u2", "<u4"), "stream.bin");
  expect_refused(edited(text, "\"records\":5000", "\"records\":-1"), "records");
  expect_refused(edited(text, "\"records\":5000", "\"records\":NaN"), "");
  expect_refused(edited(text, "\"records\":5000", "\"records\":18446744073709551616"), "records");
  expect_refused(edited(text, "\"records\":5000", "\"records\":18446744073709551615"), "64 bits");
  expect_refused(edited(text, "\"records\":5000", "\"records\":5001"), "stream.bin");
  expect_refused(edited(text, "\"spans\":3", "\"spans\":2"), "2 spans and 3 entries");
  expect_refused(edited(text, "\"metadata.index\":64", "\"metadata.index\":63"), "metadata.index");
  expect_refused(edited(text, "\"metadata.bin\":77", "\"metadata.bin\":18446744073709551615"), "63 bits");
  expect_refused(edited(text, "\"metadata.bin\":77", "\"other\":1,\"metadata.bin\":77"), "5 files");
  for (const char* name : {"", ".", "..", "../00000", "/etc", "a/b", "a\\\\b", "C:", "a\\u0000", ".hidden"}) {
    expect_refused(edited(text, "\"name\":\"00000\"", std::string("\"name\":\"") + name + "\""), "shard name");
  }
  expect_refused(edited(text, "\"name\":\"00001\"", "\"name\":\"00000\""), "twice");
  expect_refused(edited(text, kDigest, "zz23456789abcdef0123456789abcdef"), "32 hex digits");
  expect_refused(edited(text, kDigest, "1123456789abcdef0123456789abcdef"), "fingerprint");
  expect_refused(edited(text, "{\"name\":\"json\"}", "null"), "codec");
}

TEST(Manifest, BoundariesHaveEntriesWithoutBytes) {
  Manifest manifest = make();
  manifest.format.codec_json = kBoundariesCodecJson;
  expect_refused(write_manifest(manifest), "metadata.bin of 77 bytes with codec {\"name\":\"boundaries\"}");
  manifest.shards[0].data_bytes = 0;
  EXPECT_TRUE(parse_manifest(write_manifest(manifest), "d").format.is_boundaries());
  Format opaque = {"opaque", "", Schema(), R"({ "name": "boundaries" })"};
  EXPECT_THROW(check_format(opaque), Error);
}

Manifest make_with_columns() {
  Manifest manifest = make();
  manifest.format.columns =
      parse_column_types(R"([["a \"name\"","category"],["score","<f4"],["X","<f8",[2,3]],["line","category"]])");
  const auto names = std::make_shared<const Categories>(Categories{"x", "y\n"});
  const auto none = std::make_shared<const Categories>();
  const ShardColumns columns{std::vector(4, kDigestBytes), {names, nullptr, nullptr, none}};
  for (ShardInfo& shard : manifest.shards) shard.columns = std::make_shared<const ShardColumns>(columns);
  return manifest;
}

TEST(Manifest, ColumnsComeBackAndAreNoPartOfTheFingerprint) {
  const Manifest made = make_with_columns();
  const std::string text = write_manifest(made);
  const Manifest read = parse_manifest(text, "d");
  EXPECT_EQ(read.format.columns, made.format.columns);
  EXPECT_EQ(read.fingerprint, parse_manifest(write_manifest(make()), "d").fingerprint);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(read.shards[i].columns->digests, made.shards[i].columns->digests);
    EXPECT_EQ(*read.shards[i].columns->categories[0], (Categories{"x", "y\n"}));
    EXPECT_EQ(read.shards[i].columns->categories[1], nullptr);
    EXPECT_TRUE(read.shards[i].columns->categories[3]->empty());
  }
  EXPECT_EQ(read.shards[0].columns->categories[0], read.shards[1].columns->categories[0]) << "a table is there once";
  EXPECT_EQ(write_manifest(read), text);
  ShardInfo made_shard = made.shards[0];
  made_shard.task_json = R"({"input":"a"})";
  const std::string shard_text = write_shard_manifest(made.format, made_shard);
  const auto [format, shard] = parse_shard_manifest(shard_text, "s");
  EXPECT_EQ(write_shard_manifest(format, shard), shard_text);
  EXPECT_EQ(shard.task_json, made_shard.task_json);
  EXPECT_THROW(parse_manifest(shard_text, "s"), Error);
  // Three entries: codes of one byte, from 64 on floats of 4, from 128 on arrays of 48, from 320 on codes.
  EXPECT_EQ(shard_files(made.format, made.shards[0]).back().bytes, 320U + 3U);
  EXPECT_EQ(std::string_view(shard_files(made.format, made.shards[0]).back().name), kColumnsName);
}

TEST(Manifest, RefusesColumnsThatCannotBe) {
  const std::string text = write_manifest(make_with_columns());
  const std::string digest = std::string("\"score\":\"") + kDigest + "\"";
  expect_refused(edited(text, "[\"score\",\"<f4\"]", "[\"score\",\"<c8\"]"),
                 "type <c8, expected booleans, integers, floats");
  expect_refused(edited(text, "[\"score\",\"<f4\"]", "[\"line\",\"<f4\"]"), "two columns named");
  expect_refused(edited(text, "[\"score\",\"<f4\"]", "[\"\",\"<f4\"]"), "a column called \"\"");
  expect_refused(edited(text, "[\"score\",\"<f4\"]", "[\"score\",\"category\",[2]]"), "has no shape");
  expect_refused(edited(text, digest, "\"score\":\"0\""), "digest \"score\"");
  expect_refused(edited(text, digest, "\"core\":\"0\""), "\"score\" is missing");
  expect_refused(edited(text, "\"line\":0", "\"line\":1"),
                 "the table of the column line is no list of different names");
  const std::string named = "\"a \\\"name\\\"\":2";
  expect_refused(edited(text, named, "\"a \\\"name\\\"\":[0,0]"), "is no list of different names");
  expect_refused(edited(text, named, "\"a \\\"name\\\"\":[0,\"x\"]"), "a number of the column");
  expect_refused(edited(text, named, "\"a \\\"name\\\"\":\"x\""), "");
  expect_refused(edited(text, "\"columns.bin\":323", "\"columns.bin\":322"), "its counts make 323");
  expect_refused(edited(text, "[\"x\",", "[\"y\\n\","), "is there twice");
  expect_refused(edited(text, "[\"x\",", "[7,"), "a string was expected");
  expect_refused(edited(text, "\"values\":{", "\"value\":{"), "\"values\" is missing");
  expect_refused(edited(text, "\"version\": 2", "\"version\": 1"), "files");
  Format tokens{"tokens", "", Schema::parse(R"([["t","<u2"]])"), "null", parse_column_types(R"([["a","<f4"]])")};
  EXPECT_THROW(check_format(tokens), Error);
}

TEST(Manifest, FeaturesAreNamedWithAndWithoutColumns) {
  for (Manifest made : {make_with_columns(), make()}) {
    EXPECT_FALSE(parse_manifest(write_manifest(made), "dataset.json").features);
    made.features = FeaturesInfo{"features.3", std::string(32, 'a')};
    const std::string text = write_manifest(made);
    EXPECT_NE(text.find("\"version\": 2"), std::string::npos);
    const Manifest read = parse_manifest(text, "dataset.json");
    ASSERT_TRUE(read.features);
    EXPECT_EQ(read.features->folder, "features.3");
    EXPECT_EQ(read.features->fingerprint, std::string(32, 'a'));
    EXPECT_EQ(read.format.columns, made.format.columns);
    expect_refused(edited(text, "features.3", "../feature"), "features' name \"../feature\"");
    expect_refused(edited(text, "aaaaaaaaaa", "aaaaaaaaax"), "expected 32 hex digits");
  }
}

TEST(Manifest, RefusesInTheListOfShardsWhatItRefusesElsewhere) {
  const std::string text = write_manifest(make());
  const std::string key = "\"entries\":3";
  expect_refused(edited(text, key, key + "," + key), "stands twice");
  expect_refused(edited(text, key, key + ",\"later\":{\"a\":1,\"a\":2}"), "stands twice");
  expect_refused(edited(text, key, key + ",\"\\u0065ntries\":3"), "stands twice");
  expect_refused(edited(text, key, key + ",\"later\":" + std::string(31, '[') + std::string(31, ']')), "nested");
  expect_refused(edited(text, key, key + ",\"later\":[1}"), "not valid JSON at byte");
  expect_refused(edited(text, key, "\"entries\":03"), "not valid JSON at byte");
  expect_refused(edited(text, key, "\"entries\":3 4"), "not valid JSON at byte");
  expect_refused(edited(text, key, "\"entries\":3.0"), "an integer from 0");
  expect_refused(edited(text, key, "\"entries\":\"3\""), "an integer from 0");
  expect_refused(edited(text, key + ",", ""), "\"entries\" is missing");
  expect_refused(edited(text, "\"name\":\"00000\",", ""), "\"name\" is missing");
  expect_refused(edited(text, "\"name\":\"00000\"", "\"name\":0"), "a string was expected");
  expect_refused(edited(text, "\"files\":{", "\"files\":[],\"other\":{"), "\"files\" is no object");
  expect_refused(edited(text, "\"files\":{", "\"other\":{"), "\"files\" is missing");
  expect_refused(edited(text, "\"metadata.bin\":77,", ""), "\"metadata.bin\" is missing");
  expect_refused(edited(text, "\"metadata.bin\":77", "\"metadata.bin\":77,\"metadata.bin\":77"), "stands twice");
  expect_refused(edited(text, "\"digests\":{", "\"digests\":1,\"other\":{"), "\"digests\" is no object");
  expect_refused(edited(text, "\"fields\":{\"token\"", "\"fields\":3,\"other\":{\"token\""), "is no object");
  expect_refused(edited(text, "\"shards\": [", "\"shards\": [7, "), "no object");
  expect_refused(edited(text, "\"shards\": [", "\"shards\": [], \"other\": ["), "no list of shards");
  expect_refused(edited(text, "\"shards\": [", "\"other\": ["), "\"shards\" is missing");
  expect_refused(edited(text, "\"shards\": [", "\"shards\": [], \"shards\": ["), "");
  expect_refused(edited(text, "\n  ],", "\n  ]],"), "not valid JSON at byte");
}

TEST(Manifest, MembersMayStandInAnyOrderAndInEscapesAndUnknownOnesArePassedOver) {
  for (const char* layout : {"compact", "ids"}) {
    const std::string text = write_manifest(make(layout));
    nlohmann::json object = nlohmann::json::parse(text);  // which sorts its members: "shards" before "version"
    object.erase("crc32c");
    object["later"] = {1};
    object["shards"][0]["later"] = {1, {{"a", nullptr}}};
    std::string body = object.dump(1);
    body.replace(body.rfind("\n}"), 2, ",");
    for (const char* escaped : {"\"records\"", "\"metadata.index\"", "\"token\"", "\"name\": \"00001\""}) {
      const std::size_t at = body.find(escaped);
      ASSERT_NE(at, std::string::npos) << escaped;
      const std::size_t last = at + std::string_view(escaped).size() - 2;  // the last character, written as \\u00xx
      body.replace(last, 1, fmt::format("\\u{:04x}", static_cast<unsigned>(body[last])));
    }
    EXPECT_EQ(write_manifest(parse_manifest(seal_json(body), "d")), text);
  }
}

TEST(Manifest, TheFingerprintIsOfContentAlone) {
  const Manifest compact = make();
  const std::string fingerprint = fingerprint_of(compact.format, compact.shards);
  Manifest other = make("ids");
  other.tokenizer_json = "null";
  other.shards[0].name = "x";
  EXPECT_EQ(fingerprint_of(other.format, other.shards), fingerprint);
  other.shards[0].field_digests[1][0] = std::byte{0xf1};
  EXPECT_NE(fingerprint_of(other.format, other.shards), fingerprint);
  Manifest split = make();
  split.shards.pop_back();
  EXPECT_NE(fingerprint_of(split.format, split.shards), fingerprint);
}

TEST(Digest, KnownAnswers) {
  EXPECT_EQ(Digest().hex(), "99aa06d3014798d86001c324468d497f");  // XXH3-128 of nothing, as the xxhsum tool says
  Digest digest;
  digest.update("a");
  digest.update("bc");
  EXPECT_EQ(digest.bytes(), digest_of(std::as_bytes(std::span("abc", 3))));
}

TEST(ShardName, NumbersAndNamesAgree) {
  for (const std::uint64_t number : {0ULL, 7ULL, 99999ULL, 100000ULL, 1234567ULL}) {
    for (const std::uint64_t generation : {0ULL, 1ULL, 12ULL}) {
      EXPECT_EQ(parse_shard_name(shard_name(number, generation)), (ShardId{generation, number}));
    }
  }
  for (const char* name : {"", "0000", "000000", "0000a", "-0001", "012345", ".partial-00000", "00000.", "00000.0",
                           "00000.01", "00000.1.2", "00000.a", ".1"}) {
    EXPECT_EQ(parse_shard_name(name), std::nullopt) << name;
  }
}

}  // namespace
}  // namespace penstock::layout
