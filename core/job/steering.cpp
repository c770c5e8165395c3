#include "core/job/steering.h"

#include "core/base/digest.h"
#include "core/base/error.h"
#include "core/base/json.h"
#include "core/job/position.h"
#include "core/job/saved_json.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <set>
#include <string_view>
#include <utility>

namespace penstock {
namespace {

using nlohmann::json;

constexpr std::uint64_t kMostWeightSum = std::uint64_t{1} << 62;

std::string entry_text(const Steering::Entry& entry) {
  std::uint64_t common = 0;
  for (const std::uint64_t weight : entry.weights) common = std::gcd(common, weight);
  std::string text = fmt::format("[{}", entry.begin);
  for (const std::uint64_t weight : entry.weights) fmt::format_to(std::back_inserter(text), ",{}", weight / common);
  text += ']';
  return text;
}

[[noreturn]] void refuse_steered(const std::string& why) {
  raise(ErrorKind::Corruption, "job: order's steered: {}", why);
}

// Where each saved weight goes; the number of `names` where it goes nowhere.
std::vector<std::size_t> places_of(const json& said, const std::vector<std::string>& names) {
  std::vector<std::size_t> places;
  std::set<std::string> seen;
  for (const json& name : get_array(said, "names", "job: order's steered")) {
    if (!name.is_string()) refuse_steered("a name is no text");
    if (!seen.insert(name.get<std::string>()).second) refuse_steered("two sources have one name");
    const auto at = std::find(names.begin(), names.end(), name.get_ref<const std::string&>());
    places.push_back(static_cast<std::size_t>(at - names.begin()));
  }
  return places;
}

Steering::Entry parsed_entry(const json& stage, const json& said, const std::vector<std::size_t>& places,
                             std::size_t sources) {
  if (!stage.is_array() || stage.size() != places.size() + 1) refuse_steered("a stage is not [begin, weight, …]");
  Steering::Entry entry;
  entry.begin = as_u64(stage[0], "job: order's steered: a begin");
  entry.weights.resize(sources);
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < places.size(); ++i) {
    const std::uint64_t weight = as_u64(stage[i + 1], "job: order's steered: a weight");
    if (weight >= kMostWeightSum || (sum += weight) >= kMostWeightSum) refuse_steered("weights beyond 2^62");
    if (weight == 0) continue;
    if (places[i] == sources) {
      raise(ErrorKind::StateMismatch, "source {}: it has a weight from position {} on, but is not of the job now",
            value_text(&said["names"][i], false), with_commas(entry.begin));
    }
    entry.weights[places[i]] = weight;
  }
  if (sum == 0) refuse_steered("a stage without weights");
  return entry;
}

}  // namespace

// ---- chunks

std::string_view Steering::Chunk::entry(std::size_t number) const {
  const std::size_t first = number == 0 ? 0 : ends[number - 1] + 1;
  return std::string_view(text).substr(first, ends[number] - first);
}

void Steering::Chunk::add(std::uint64_t begin, std::string_view entry) {
  if (!begins.empty()) text += ',';
  text += entry;
  begins.push_back(begin);
  ends.push_back(static_cast<std::uint32_t>(text.size()));
}

// Goes on after the first entries of a list, whose full chunks it shares.
class Steering::Builder {
 public:
  Builder(const Steering& from, std::size_t count) : made_(from.names_) {
    const std::size_t whole = count / kChunk;
    made_.chunks_.assign(from.chunks_.begin(), from.chunks_.begin() + static_cast<std::ptrdiff_t>(whole));
    made_.size_ = whole * kChunk;
    for (std::size_t i = whole * kChunk; i < count; ++i) copy(from, i);
  }

  void copy(const Steering& from, std::size_t number) {
    add(from.begin(number), from.chunks_[number / kChunk]->entry(number % kChunk));
  }
  void add(std::uint64_t begin, std::string_view entry) {
    open_.add(begin, entry);
    ++made_.size_;
    if (open_.begins.size() == kChunk) close();
  }
  Steering finish() {
    if (!open_.begins.empty()) close();
    return std::move(made_);
  }

 private:
  void close() {
    open_.begins.shrink_to_fit();
    open_.ends.shrink_to_fit();
    open_.text.shrink_to_fit();
    made_.chunks_.push_back(std::make_shared<const Chunk>(std::exchange(open_, {})));
  }

  Steering made_;
  Chunk open_;
};

// ---- what it answers

Steering::Steering(std::vector<std::string> names) : names_(std::move(names)) {}

std::uint64_t Steering::begin(std::size_t number) const {
  return chunks_[number / kChunk]->begins[number % kChunk];
}

std::vector<std::uint64_t> Steering::weights(std::size_t number) const {
  const std::string_view text = chunks_[number / kChunk]->entry(number % kChunk);
  std::vector<std::uint64_t> weights;
  const char* at = text.data() + text.find(',');
  const char* const end = text.data() + text.size();
  while (at != end && *at == ',') {
    std::uint64_t weight = 0;
    at = std::from_chars(at + 1, end, weight).ptr;
    weights.push_back(weight);
  }
  return weights;
}

std::size_t Steering::count_before(std::uint64_t position) const {
  const auto after = std::partition_point(chunks_.begin(), chunks_.end(),
                                          [&](const auto& chunk) { return chunk->begins.front() < position; });
  if (after == chunks_.begin()) return 0;
  const std::vector<std::uint64_t>& begins = (*std::prev(after))->begins;
  const auto in_chunk = std::lower_bound(begins.begin(), begins.end(), position) - begins.begin();
  return static_cast<std::size_t>(after - chunks_.begin() - 1) * kChunk + static_cast<std::size_t>(in_chunk);
}

std::size_t Steering::common(const Steering& other) const {
  const std::size_t most = std::min(size_, other.size_);
  std::size_t count = 0;
  while (count + kChunk <= most && chunks_[count / kChunk] == other.chunks_[count / kChunk]) count += kChunk;
  const auto same = [&](std::size_t i) {
    return chunks_[i / kChunk]->entry(i % kChunk) == other.chunks_[i / kChunk]->entry(i % kChunk);
  };
  while (count < most && same(count)) ++count;
  return count;
}

Steering Steering::first(std::size_t count) const {
  return Builder(*this, count).finish();
}

Steering Steering::with(std::span<const Entry> entries) const {
  if (entries.empty()) return *this;
  std::size_t old = count_before(entries.front().begin);
  Builder builder(*this, old);
  for (const Entry& entry : entries) {
    for (; old < size_ && begin(old) < entry.begin; ++old) builder.copy(*this, old);
    if (old < size_ && begin(old) == entry.begin) ++old;
    builder.add(entry.begin, entry_text(entry));
  }
  for (; old < size_; ++old) builder.copy(*this, old);
  return builder.finish();
}

Steering Steering::with_later(const Steering& other, std::size_t first) const {
  if (first >= other.size_) return *this;
  std::size_t own = count_before(other.begin(first));
  Builder builder(*this, own);
  for (std::size_t i = first; i < other.size_; ++i) {
    for (; own < size_ && begin(own) < other.begin(i); ++own) builder.copy(*this, own);
    if (own < size_ && begin(own) == other.begin(i)) continue;
    builder.copy(other, i);
  }
  for (; own < size_; ++own) builder.copy(*this, own);
  return builder.finish();
}

// ---- text

void Steering::append_text(std::size_t count, std::string& out) const {
  if (count == size_) out.reserve(out.size() + text_bytes() + 4096);  // and what else a job says
  for (std::size_t first = 0; first < count; first += kChunk) {
    const Chunk& chunk = *chunks_[first / kChunk];
    const std::size_t some = std::min(kChunk, count - first);
    if (first > 0) out += ',';
    out.append(chunk.text, 0, some == 0 ? 0 : chunk.ends[some - 1]);
  }
}

std::string Steering::last_text() const {
  return std::string(chunks_.back()->entry((size_ - 1) % kChunk));
}

std::uint64_t Steering::text_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& chunk : chunks_) bytes += chunk->text.size() + 1;
  return bytes;
}

std::string Steering::digest() const {
  Digest digest;
  for (const auto& chunk : chunks_) digest.update(std::string_view(chunk->text));
  return digest.hex();
}

Steering Steering::parse(const json& said, const std::vector<std::string>& names) {
  const std::vector<std::size_t> places = places_of(said, names);
  const Steering none(names);
  Builder builder(none, 0);
  std::uint64_t before = 0;
  bool is_first = true;
  for (const json& stage : get_array(said, "stages", "job: order's steered")) {
    const Entry entry = parsed_entry(stage, said, places, names.size());
    if (entry.begin > kMostPosition || (!is_first && entry.begin <= before)) refuse_steered("begins do not rise");
    builder.add(entry.begin, entry_text(entry));
    before = entry.begin;
    is_first = false;
  }
  return builder.finish();
}

}  // namespace penstock
