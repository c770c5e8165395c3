#include "layout/reading/checks.h"

#include "core/base/align.h"
#include "core/base/crc32c.h"
#include "core/base/error.h"
#include "layout/dataset/folder.h"
#include "layout/dataset/format.h"
#include "layout/dataset/manifest.h"
#include "layout/reading/reads.h"
#include "layout/reading/side_files.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <utility>

namespace penstock::layout {
namespace {

// Whole blocks of a file on their way, and what a source wanted of them. A file that is compared once is claimed by the
// row that first reads it. Rows that read it meanwhile are not widened: they end if the file is trusted by then, and
// else (the first row is slower, failed or was cancelled) compare one block of their own. No row ends before its file
// is trusted.
struct Pending {
  Pending* next = nullptr;
  std::uint64_t shard = 0;
  const File* file = nullptr;
  SideFile* side = nullptr;
  KeptRange values;  // one for each block
  std::uint64_t begin = 0;
  std::uint64_t bytes = 0;
  std::byte* blocks = nullptr;
  std::byte* to = nullptr;  // null: the blocks were read to where they are wanted
  std::uint64_t wanted_offset = 0;
  std::uint64_t wanted_bytes = 0;
  bool is_deferred = false;  // another row compares blocks of the file: nothing was read for it so far
  bool is_again = false;     // what was read first came from a copy (ByteStore::doubt), and was wrong
};

// In the row's arena, from its first read that is checked on.
struct RowChecks {
  Pending* pending = nullptr;
  bool more = true;      // the source has another round
  unsigned delayed = 0;  // rounds that the source was not asked for, before it has the next one
};

// What a read is compared with; none: it is not.
struct Check {
  SideFile* side = nullptr;
  std::uint64_t shard = 0;
  bool is_once = false;  // the first one of the file is enough
};

class Checked final : public Source {
 public:
  Checked(DatasetPtr dataset, std::shared_ptr<const Source> source)
      : dataset_(std::move(dataset)), source_(std::move(source)), sides_(*dataset_) {}

  [[nodiscard]] const SourceInfo& info() const override { return source_->info(); }
  bool plan(Row& row, unsigned round, Parts wanted, Reads& out) const override;
  void spans(const Row& row, SpanTable& out) const override { source_->spans(row, out); }
  [[nodiscard]] std::uint64_t base_index(std::uint64_t index) const override { return source_->base_index(index); }
  [[nodiscard]] std::int64_t first_record(const Row& row, std::uint64_t index) const override {
    return source_->first_record(row, index);
  }
  [[nodiscard]] Place place_of(std::uint64_t index) const override { return source_->place_of(index); }

 private:
  bool take(Pending& pending) const;
  static void read_again(Row& row, Pending& pending, Reads& out);
  static void read_blocks(Row& row, Pending& of, Reads& out);
  void check_shard(std::uint64_t number) const;
  [[nodiscard]] Check check_of(const Read& read) const;
  Pending* widen(Row& row, std::size_t i, Reads& out) const;
  Pending* finish(Row& row, Pending* pending, Reads& out) const;
  static void read_values(Row& row, Pending& of, Reads& out);

  const DatasetPtr dataset_;
  const std::shared_ptr<const Source> source_;
  const SideFiles sides_;
};

bool Checked::plan(Row& row, unsigned round, Parts wanted, Reads& out) const {
  auto* state = static_cast<RowChecks*>(row.checks);
  if (state != nullptr) {
    state->pending = finish(row, std::exchange(state->pending, nullptr), out);
    if (state->pending != nullptr) {
      ++state->delayed;  // what was read is not trusted so far
      return true;
    }
    if (!state->more) return false;
    round -= state->delayed;
  }
  const std::size_t before = out.size();
  const bool more = source_->plan(row, round, wanted, out);
  Pending* pending = nullptr;
  for (std::size_t i = before, end = out.size(); i < end; ++i) {
    Pending* const added = widen(row, i, out);
    if (added != nullptr) added->next = std::exchange(pending, added);
  }
  if (pending == nullptr) return more;
  if (state == nullptr) row.checks = state = row.arena.make<RowChecks>();
  state->pending = pending;
  state->more = more;
  return true;
}

// Compares what was read. Returns those that are not settled: they were deferred, and a block of each is read now; or
// they were wrong copies, and are read again.
Pending* Checked::finish(Row& row, Pending* pending, Reads& out) const {
  Pending* left = nullptr;
  Pending* deferred = nullptr;
  for (Pending* next = pending; next != nullptr;) {
    Pending& each = *std::exchange(next, next->next);
    if (each.is_deferred) {
      each.next = std::exchange(deferred, &each);
    } else if (!take(each)) {
      read_again(row, each, out);
      each.next = std::exchange(left, &each);
    }
  }
  for (Pending* next = deferred; next != nullptr;) {
    Pending& each = *std::exchange(next, next->next);
    if (each.side->is_trusted.load(std::memory_order_acquire)) continue;
    if (left == nullptr || left->side != each.side || left->is_again) {  // one block of a file is enough
      each.is_deferred = false;
      each.begin = each.wanted_offset / kCrcBlockBytes * kCrcBlockBytes;
      each.bytes = std::min(kCrcBlockBytes, each.file->bytes - each.begin);
      read_blocks(row, each, out);
    }
    each.next = std::exchange(left, &each);
  }
  return left;
}

void Checked::read_blocks(Row& row, Pending& of, Reads& out) {
  of.blocks = make_room(row, *of.file, of.begin, of.bytes);
  plan_read(*of.file, of.begin, of.bytes, of.blocks, out);
  read_values(row, of, out);
}

void Checked::read_values(Row& row, Pending& of, Reads& out) {
  const std::uint64_t first = of.begin / kCrcBlockBytes;
  const std::uint64_t count = (of.bytes + kCrcBlockBytes - 1) / kCrcBlockBytes;
  of.values.begin(row, of.side->values, of.side->kept.get(), first * 4, count * 4, out);
}

Check Checked::check_of(const Read& read) const {
  const auto* const first = reinterpret_cast<const std::byte*>(dataset_->shards.data());
  const auto* const file = reinterpret_cast<const std::byte*>(read.file);
  const std::less<> before;  // the file of a pack table is none of them
  if (before(file, first) || !before(file, first + dataset_->shards.size() * sizeof(Shard))) return {};
  const auto distance = file - first;
  const std::uint64_t shard = static_cast<std::uint64_t>(distance) / sizeof(Shard);
  const Shard& own = dataset_->shards[shard];
  if (own.checks == Checks::None) return {};
  ShardSides& sides = sides_.of(shard);
  if (read.file == &own.index) return {&sides.index, shard, false};
  if (read.file == &own.directory) return {&sides.directory, shard, false};
  SideFile& side = read.file == &own.stream ? sides.stream : read.file == &own.columns ? sides.columns : sides.data;
  if (own.checks == Checks::All) return {&side, shard, false};
  return side.is_trusted.load(std::memory_order_acquire) ? Check() : Check{&side, shard, true};
}

// Makes read number i one of whole blocks, or defers its check; null if it needs none.
Pending* Checked::widen(Row& row, std::size_t i, Reads& out) const {
  const auto [side, shard, is_once] = check_of(out[i]);
  if (side == nullptr) return nullptr;
  auto* added = row.arena.make<Pending>();
  Read& read = out[i];
  added->shard = shard;
  added->file = read.file;
  added->side = side;
  if (is_once && side->is_claimed.exchange(true, std::memory_order_acq_rel)) {
    added->is_deferred = true;
    added->wanted_offset = read.offset;
    return added;
  }
  added->begin = read.offset / kCrcBlockBytes * kCrcBlockBytes;
  added->bytes = std::min(align_up(read.offset + read.size, kCrcBlockBytes), read.file->bytes) - added->begin;
  if (added->begin != read.offset || added->bytes != read.size) {
    added->to = read.destination;
    added->wanted_offset = read.offset;
    added->wanted_bytes = read.size;
    read.offset = added->begin;
    read.size = added->bytes;
    read.destination = make_room(row, *added->file, added->begin, added->bytes);
  }
  added->blocks = read.destination;
  read_values(row, *added, out);
  return added;
}

// To the same place, in the end.
void Checked::read_again(Row& row, Pending& pending, Reads& out) {
  if (pending.to == nullptr) {
    pending.to = pending.blocks;
    pending.wanted_offset = pending.begin;
    pending.wanted_bytes = pending.bytes;
  }
  pending.is_again = true;
  read_blocks(row, pending, out);
}

// Compares, and gives the source what it wanted. False: it was a wrong copy, and another one may be right.
bool Checked::take(Pending& pending) const {
  pending.values.end();
  std::span<const std::byte> left(pending.blocks, pending.bytes);
  for (std::uint64_t i = 0; !left.empty(); ++i) {
    const std::span<const std::byte> block = left.first(std::min<std::size_t>(left.size(), kCrcBlockBytes));
    left = left.subspan(block.size());
    const auto wanted = load_at<std::uint32_t>(pending.values.bytes, i);
    const std::uint32_t seen = crc32c(block);
    if (seen == wanted) continue;
    const std::uint64_t at = pending.begin + i * kCrcBlockBytes;
    pending.side->is_claimed = false;  // the next read of the file compares all of its blocks again
    const File& values = pending.side->values;
    const bool had_copy = pending.file->store()->doubt(*pending.file, pending.begin, pending.bytes);
    const bool had_values = values.store()->doubt(values, pending.begin / kCrcBlockBytes * 4, 4 * (i + 1));
    if ((had_copy || had_values) && !pending.is_again) return false;
    raise(ErrorKind::Corruption,
          "{}: bytes {} to {} are not those that were written: check value {:08x}, {} says {:08x}. A flipped bit, or "
          "another file; `penstock verify` looks at all of them",
          pending.file->path(), with_commas(at), with_commas(at + block.size()), seen, pending.side->values.path(),
          wanted);
  }
  pending.values.keep();
  if (!pending.side->is_trusted.load(std::memory_order_relaxed)) {
    check_shard(pending.shard);
    pending.side->is_trusted.store(true, std::memory_order_release);
  }
  if (pending.to != nullptr) {
    std::memcpy(pending.to, pending.blocks + (pending.wanted_offset - pending.begin), pending.wanted_bytes);
  }
  return true;
}

bool same_columns(const ShardColumns* a, const ShardColumns* b) {
  return a == nullptr || b == nullptr ? a == b : a->digests == b->digests;
}

// Whether the folder is the shard that the manifest names: its own shard.json has the same counts and digests. Where
// reading it would keep other reads waiting, sizes and check values must do.
void Checked::check_shard(std::uint64_t number) const {
  ShardSides& sides = sides_.of(number);
  if (sides.is_known.load(std::memory_order_acquire)) return;
  const Shard& shard = dataset_->shards[number];
  const File& any = shard.stream.store() != nullptr ? shard.stream : shard.index;
  if (any.store()->is_far()) return;
  const std::string path = any.beside(kShardManifestName, 0).path();
  std::string text;
  try {
    text = read_manifest_text(*any.store(), path, Links::BelowParent);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::NotFound) throw;
    sides.is_known = true;  // other writers may have none
    return;
  }
  const ShardInfo own = parse_shard_manifest(std::move(text), path).second;
  const std::uint64_t spans = dataset_->token_rule.empty() ? shard.spans : 0;  // else found in a token stream
  const bool same = own.records == shard.records && own.spans == spans && own.entries == shard.entries &&
                    own.field_digests == shard.field_digests && own.span_digest == shard.span_digest &&
                    same_columns(own.columns.get(), shard.shard_columns.get());
  if (!same) {
    raise(ErrorKind::Corruption,
          "{}: this is another shard than the one that {} names: their counts or digests differ. Put the right folder "
          "back, or write the dataset again",
          path, dataset_->path);
  }
  sides.is_known.store(true, std::memory_order_release);
}

}  // namespace

std::shared_ptr<const Source> checked(const DatasetPtr& dataset, std::shared_ptr<const Source> source) {
  const auto has_checks = [](const Shard& shard) { return shard.checks != Checks::None; };
  if (std::none_of(dataset->shards.begin(), dataset->shards.end(), has_checks)) return source;
  return std::make_shared<Checked>(dataset, std::move(source));
}

}  // namespace penstock::layout
