#include "layout/where/choosing.h"

#include "core/base/error.h"
#include "layout/dataset/format.h"
#include "layout/reading/block_reader.h"
#include "layout/reading/reads.h"
#include "layout/values/dataset_columns.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>

namespace penstock::layout {
namespace {

using Bits = std::span<std::uint64_t>;
using Kind = Condition::Kind;

// Documents whose values are in memory at once: their bytes and bits fit into a core's cache.
constexpr std::uint64_t kPieceDocuments = 1U << 17;

bool is_none(Bits bits) {
  return std::all_of(bits.begin(), bits.end(), [](std::uint64_t word) { return word == 0; });
}

bool is_every(Bits bits, std::uint64_t count) {
  std::uint64_t rest = count % 64;
  if (rest != 0 && bits.back() != (std::uint64_t{1} << rest) - 1) return false;
  const Bits whole = rest == 0 ? bits : bits.first(bits.size() - 1);
  return std::all_of(whole.begin(), whole.end(), [](std::uint64_t word) { return word == UINT64_MAX; });
}

void fill(Bits bits, std::uint64_t count, bool value) {
  std::fill(bits.begin(), bits.end(), value ? UINT64_MAX : 0);
  if (value && count % 64 != 0) bits.back() = (std::uint64_t{1} << count % 64) - 1;
}

void put_bits(std::vector<std::uint64_t>& words, std::uint64_t at, Bits bits) {
  const unsigned shift = at % 64;
  std::uint64_t word = at / 64;
  for (const std::uint64_t each : bits) {
    words[word] |= each << shift;
    ++word;
    if (shift != 0 && each >> (64 - shift) != 0) words[word] |= each >> (64 - shift);
  }
}

}  // namespace

// Documents of one shard that follow one another, and of their values those that were asked for.
class Choosing::Piece {
 public:
  Piece(const Dataset& dataset, std::uint64_t shard, const StoreChoice& through)
      : dataset_(dataset),
        shard_(shard),
        through_(through),
        readers_(dataset.columns.size()),
        values_(dataset.columns.size()) {}

  void move_to(std::uint64_t first, std::uint64_t count) {
    first_ = first;
    count_ = count;
    std::fill(values_.begin(), values_.end(), nullptr);
  }
  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }

  /// Sets the bits of those of which it is true.
  void test(const BoundCondition& condition, Bits bits, unsigned depth = 0) {
    if (condition.kind == Kind::And || condition.kind == Kind::Or) return test_parts(condition, bits, depth);
    if (condition.values) return condition.values(values(condition.column), count_, bits);
    if (condition.pairs) {
      const std::byte* const left = values(condition.column);
      return condition.pairs(left, values(condition.other), count_, bits);
    }
    if (condition.codes) return test_category(condition, bits);
    if (condition.ranks) return test_ranks(condition, bits);
    fill(bits, count_, condition.is_always);
  }

 private:
  void test_parts(const BoundCondition& condition, Bits bits, unsigned depth) {
    const bool is_and = condition.kind == Kind::And;
    test(condition.parts[0], bits, depth);
    if (spare_.size() <= depth) spare_.resize(depth + 1);
    for (std::size_t part = 1; part < condition.parts.size(); ++part) {
      if (is_and ? is_none(bits) : is_every(bits, count_)) return;  // which decides
      spare_[depth].resize(words_for(kPieceDocuments));
      const Bits more = Bits(spare_[depth].data(), bits.size());
      test(condition.parts[part], more, depth + 1);
      for (std::size_t i = 0; i < bits.size(); ++i) bits[i] = is_and ? bits[i] & more[i] : bits[i] | more[i];
    }
  }

  // As they are stored.
  const std::byte* values(std::size_t column) {
    if (values_[column] != nullptr) return values_[column];
    const ColumnPlace& place = dataset_.column_table->place(shard_, column);
    if (const std::byte* const kept = dataset_.column_table->kept(shard_, column)) {
      return values_[column] = kept + first_ * place.value_bytes;
    }
    if (!readers_[column]) {
      const Shard& shard = dataset_.shards[shard_];
      File checks =
          shard.checks == Checks::None ? File() : shard.columns.beside(kColumnsCrcName, crc_bytes(shard.columns.bytes));
      readers_[column] = std::make_unique<BlockReader>(shard.columns, std::move(checks), through_);
    }
    const std::uint64_t offset = place.offset + first_ * place.value_bytes;
    return values_[column] = readers_[column]->read(offset, count_ * place.value_bytes).data();
  }

  // Codes of the shard's own table, each with what the dataset's has for its name.
  template <typename T>
  std::vector<T> of_shard(std::size_t column, const std::vector<T>& of_dataset) const {
    const UnionCodes& codes = dataset_.column_table->codes(shard_, column);
    std::vector<T> found{of_dataset[0]};
    found.reserve(codes.size() + 1);
    for (const std::int32_t code : codes) found.push_back(of_dataset[static_cast<std::size_t>(code) + 1]);
    return found;
  }

  void test_category(const BoundCondition& condition, Bits bits) {
    auto known = truths_.find(&condition);
    if (known == truths_.end()) {
      known = truths_.emplace(&condition, of_shard(condition.column, *condition.codes)).first;
    }
    const std::byte* const codes = values(condition.column);
    const auto bytes = static_cast<std::uint32_t>(dataset_.column_table->place(shard_, condition.column).value_bytes);
    try {
      test_codes(codes, bytes, count_, known->second, bits);
    } catch (const std::out_of_range&) {
      ranks_of(condition.column, *condition.codes);  // which says which code
      throw;
    }
  }

  void test_ranks(const BoundCondition& condition, Bits bits) {
    const std::vector<std::int32_t> left = ranks_of(condition.column, *condition.ranks);
    const std::vector<std::int32_t> right = ranks_of(condition.other, *condition.other_ranks);
    fill(bits, count_, false);
    for (std::uint64_t i = 0; i < count_; ++i) {
      if (left[i] == 0 || right[i] == 0) continue;
      if (holds(condition.comparison, left[i] - right[i])) bits[i / 64] |= std::uint64_t{1} << i % 64;
    }
  }

  // The entry of `of_dataset` for the code of each document.
  template <typename T>
  std::vector<T> ranks_of(std::size_t column, const std::vector<T>& of_dataset) {
    std::vector<std::int32_t> codes(count_);
    dataset_.column_table->give(shard_, column, values(column), count_, reinterpret_cast<std::byte*>(codes.data()));
    std::vector<T> found(count_);
    for (std::uint64_t i = 0; i < count_; ++i)
      found[i] = of_dataset[static_cast<std::size_t>(std::int64_t{codes[i]} + 1)];
    return found;
  }

  const Dataset& dataset_;
  const std::uint64_t shard_;
  const StoreChoice& through_;
  std::uint64_t first_ = 0;
  std::uint64_t count_ = 0;
  std::vector<std::unique_ptr<BlockReader>> readers_;  // by column
  std::vector<const std::byte*> values_;               // by column; null: they were not asked for
  std::map<const BoundCondition*, Truths> truths_;     // of the shard's codes
  std::vector<std::vector<std::uint64_t>> spare_;      // by depth
};

Choosing::Choosing(DatasetPtr dataset, std::string_view condition, StoreChoice through)
    : dataset_(std::move(dataset)), through_(std::move(through)) {
  const Condition parsed = parse_condition(condition);
  if (dataset_->columns.empty()) {
    raise(ErrorKind::InvalidArgument, "{}: it has no columns, which conditions are of: {}", dataset_->path,
          dataset_->kind != "penstock" ? "`penstock import` it, then penstock.annotate adds some"
          : has_entries(*dataset_)     ? "penstock.annotate adds some; of keys of metadata, `penstock annotate "
                                         "--from-metadata KEY,…`"
                                       : "penstock.annotate adds some to a dataset");
  }
  if (dataset_->spans == SpanKind::Ids) {
    raise(ErrorKind::InvalidArgument,
          "{}: in the ids layout only the records tell which are of an entry, so none can be chosen by its columns: "
          "penstock.convert makes the compact layout of it",
          dataset_->path);
  }
  text_ = condition_text(parsed);
  condition_ = bind_condition(*dataset_, parsed, condition);
  words_.resize(words_for(documents()));
}

std::uint64_t Choosing::documents() const noexcept {
  return dataset_->column_table->entry_starts().back();
}

void Choosing::look(std::uint64_t first, std::uint64_t count) {
  const std::vector<std::uint64_t>& starts = dataset_->column_table->entry_starts();
  const std::uint64_t end = first + count;
  if (first % 64 != 0 || end < first || end > starts.back() || (count % 64 != 0 && end != starts.back())) {
    raise(ErrorKind::InvalidArgument, "documents {} to {} of {}: multiples of 64 are wanted", with_commas(first),
          with_commas(end), with_commas(starts.back()));
  }
  if (count == 0) return;
  std::vector<std::uint64_t> bits(words_for(kPieceDocuments));
  for (std::uint64_t shard = Dataset::shard_of(starts, first); first < end; ++shard) {
    const std::uint64_t stop = std::min(end, starts[shard + 1]);
    std::optional<Piece> piece;
    while (first < stop) {
      if (!piece) piece.emplace(*dataset_, shard, through_);
      const std::uint64_t part = std::min(kPieceDocuments, stop - first);
      piece->move_to(first - starts[shard], part);
      const Bits found(bits.data(), words_for(part));
      piece->test(condition_, found);
      put_bits(words_, first, found);
      first += part;
    }
  }
}

std::vector<std::pair<std::string, std::string>> Choosing::texts() const {
  std::vector<std::pair<std::string, std::string>> found;
  std::vector<const BoundCondition*> left{&condition_};
  while (!left.empty()) {
    const BoundCondition& each = *left.back();
    left.pop_back();
    for (auto part = each.parts.rbegin(); part != each.parts.rend(); ++part) left.push_back(&*part);
    for (const std::string& text : each.texts) found.emplace_back(dataset_->columns[each.column].name, text);
  }
  return found;
}

Chosen Choosing::chosen() {
  return {std::move(words_), documents()};
}

std::string choice_json(const std::string& condition, const Chosen& chosen) {
  const nlohmann::json said = {
      {"condition", condition}, {"count", chosen.count()}, {"digest", chosen.digest()}, {"documents", chosen.size()}};
  return said.dump();
}

}  // namespace penstock::layout
