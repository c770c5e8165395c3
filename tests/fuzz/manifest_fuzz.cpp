// Any bytes as dataset.json and shard.json, sealed here. What parses prints, and parses again; a dataset.json of
// other counts gets their fingerprint, and is opened.
#include "layout/dataset/manifest.h"
#include "layout/dataset/sealed_json.h"
#include "tests/fuzz/read_views.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>

namespace penstock::fuzz {
namespace {

constexpr std::size_t kHex = 32;

// The text with the fingerprint that its shards make, which the error of parsing it tells.
std::optional<std::string> with_its_fingerprint(std::string body, std::string_view error) {
  constexpr std::string_view kSaid = "fingerprint ";
  constexpr std::string_view kMade = ", its shards make ";
  const std::size_t made = error.rfind(kMade);
  const std::size_t said = made == std::string_view::npos ? made : error.rfind(kSaid, made);
  if (said == std::string_view::npos) return std::nullopt;
  const std::string_view wrong = error.substr(said + kSaid.size(), kHex);
  const std::string_view right = error.substr(made + kMade.size(), kHex);
  const std::size_t at = body.find(wrong);
  if (at == std::string::npos) return std::nullopt;
  return body.replace(at, kHex, right);
}

std::optional<layout::Manifest> parse(const std::string& body, std::string& error) {
  try {
    return layout::parse_manifest(layout::seal_json(body), "dataset.json");
  } catch (const Error& refused) {
    check_message(refused);
    error = refused.what();
    return std::nullopt;
  }
}

// As docs/format.md has them, and each one once.
void check_names(const layout::Manifest& manifest) {
  const auto is_of_names = [](char c) {
    return ('0' <= c && c <= '9') || ('A' <= c && c <= 'Z') || ('a' <= c && c <= 'z') || c == '.' || c == '_' ||
           c == '-';
  };
  std::set<std::string> names;
  for (const layout::ShardInfo& shard : manifest.shards) {
    require(!shard.name.empty() && shard.name[0] != '.' && std::ranges::all_of(shard.name, is_of_names),
            "a shard whose name is no folder's of its dataset");
    require(names.insert(shard.name).second, "two shards of one name");
  }
}

void check_prints(const layout::Manifest& manifest) {
  accepts([&] {
    const std::string printed = layout::write_manifest(manifest);
    require(layout::write_manifest(layout::parse_manifest(printed, "printed")) == printed, "another manifest printed");
  });
}

void open(const std::string& body, std::uint64_t first) {
  accepts([&] {
    const auto store = std::make_shared<testing::MemoryStore>();
    put(*store, "d/dataset.json", layout::seal_json(body));
    for (const auto checks : {layout::Checks::Index, layout::Checks::None}) {
      const layout::DatasetPtr dataset = layout::open_dataset({store, "d"}, checks);
      read_views(dataset, first, 4);  // of files that are not there
      accepts([&] { layout::concatenate({dataset, dataset}); });
      accepts([&] { layout::make_documents(dataset, {"n"}); });
    }
  });
}

}  // namespace

bool manifest(Input input) {
  std::string body = text_of(input);
  accepts([&] { layout::parse_manifest(body, "dataset.json"); });
  std::string error;
  std::optional<layout::Manifest> found = parse(body, error);
  if (!found) {
    if (std::optional<std::string> other = with_its_fingerprint(body, error)) {
      body = std::move(*other);
      found = parse(body, error);
    }
  }
  if (found) {
    check_names(*found);
    check_prints(*found);
    open(body, input.size());
  }
  return accepts([&] {
           const auto [format, shard] = layout::parse_shard_manifest(layout::seal_json(body), "shard.json");
           layout::parse_shard_manifest(layout::write_shard_manifest(format, shard), "printed");
         }) ||
         found;
}

}  // namespace penstock::fuzz
