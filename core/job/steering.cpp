#include "core/job/steering.h"

#include "core/base/digest.h"
#include "core/base/error.h"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <string_view>
#include <utility>

namespace penstock {
namespace {

std::string entry_text(const Steering::Entry& entry) {
  std::uint64_t common = 0;
  for (const std::uint64_t weight : entry.weights) common = std::gcd(common, weight);
  std::string text = fmt::format("[{}", entry.begin);
  for (const std::uint64_t weight : entry.weights) fmt::format_to(std::back_inserter(text), ",{}", weight / common);
  text += ']';
  return text;
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

}  // namespace penstock
