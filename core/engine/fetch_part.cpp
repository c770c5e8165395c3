#include "core/engine/fetch_part.h"

#include "core/base/align.h"
#include "core/base/checked.h"
#include "core/engine/row_memory.h"

#include <utility>

namespace penstock {

void FetchPart::place() {
  const std::uint64_t record_bytes = format->stored_record_bytes;
  const std::uint64_t lead_bytes = format->shape.lead * record_bytes;
  const auto bytes_of = [&](const Row& row) {
    return align_up(lead_bytes + (row.length + format->shape.tail) * record_bytes, kCacheLine);
  };
  std::uint64_t bytes = 0;
  for (const Row& row : rows) bytes = checked_add(bytes, bytes_of(row), "bytes of a fetch");
  if (format->shape.ragged && bytes > most_bytes) raise_too_long(format->source->info(), rows, bytes, most_bytes);
  slab.ensure(bytes);
  placed_bytes = bytes;
  std::byte* at = slab.data();
  for (Row& row : rows) {
    row.records = at + lead_bytes;
    at += bytes_of(row);
  }
}

std::uint64_t FetchPart::held_bytes() const noexcept {
  std::uint64_t bytes = slab.bytes();
  for (const Row& row : rows) bytes += sizeof(Row) + row.arena.capacity_bytes();
  return bytes;
}

std::uint64_t FetchPart::used_bytes() const noexcept {
  std::uint64_t bytes = placed_bytes;
  for (const Row& row : rows) bytes += sizeof(Row) + row.arena.used_bytes();
  return bytes;
}

std::unique_ptr<FetchPart> SpareParts::take(std::size_t rows) {
  Spare spare;
  {
    const std::lock_guard lock(mutex_);
    if (!spares_.empty()) {
      spare = std::move(spares_.back());
      spares_.pop_back();
    }
  }
  bound_->remove_spare(spare.bytes);
  if (!spare.part) spare.part = std::make_unique<FetchPart>();
  spare.part->rows.resize(rows);
  spare.part->counted_bytes = spare.part->placed_bytes = 0;
  return std::move(spare.part);
}

void SpareParts::give(std::unique_ptr<FetchPart> part) noexcept {
  Spare spare{std::move(part), 0};
  spare.bytes = spare.part->held_bytes();
  const std::lock_guard lock(mutex_);
  try {
    spares_.push_back(std::move(spare));
  } catch (const std::bad_alloc&) {
    return;  // it is freed
  }
  bound_->add_spare(spares_.back().bytes);
}

void SpareParts::clear() noexcept {
  std::vector<Spare> dropped;
  {
    const std::lock_guard lock(mutex_);
    dropped.swap(spares_);
  }
  for (const Spare& spare : dropped) bound_->remove_spare(spare.bytes);
}

}  // namespace penstock
