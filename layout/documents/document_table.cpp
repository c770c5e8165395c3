#include "layout/documents/document_table.h"

#include <algorithm>

namespace penstock::layout {

void DocumentTable::add(std::uint64_t tokens, std::uint64_t byte) {
  if (open_.size() == kBlock) close_block();
  open_.push_back({tokens_, byte});
  tokens_ += tokens;
  ++documents_;
}

void DocumentTable::finish() {
  if (!open_.empty()) close_block();
  open_ = {};
  blocks_.shrink_to_fit();
  narrow_.shrink_to_fit();
  wide_.shrink_to_fit();
}

void DocumentTable::close_block() {
  const Start first = open_.front();
  const Start last = open_.back();
  Block block{.token = first.token, .byte = first.byte};
  block.tokens_each = open_.size() > 1 ? open_[1].token - first.token : tokens_ - first.token;
  block.bytes_each = open_.size() > 1 ? open_[1].byte - first.byte : 0;
  block.is_even = tokens_ - last.token == block.tokens_each;
  for (std::size_t i = 0; i < open_.size(); ++i) {
    block.is_even &= open_[i].token == first.token + i * block.tokens_each;
    block.is_even &= open_[i].byte == first.byte + i * block.bytes_each;
  }
  block.is_wide = last.token - first.token > UINT32_MAX || last.byte - first.byte > UINT32_MAX;
  block.at = block.is_wide ? wide_.size() : narrow_.size();
  for (const Start& each : block.is_even ? std::vector<Start>() : open_) {
    const auto append = [&](std::uint64_t value) {
      block.is_wide ? wide_.push_back(value) : narrow_.push_back(static_cast<std::uint32_t>(value));
    };
    append(each.token - first.token);
    if (knows_bytes_) append(each.byte - first.byte);
  }
  blocks_.push_back(block);
  open_.clear();
}

DocumentTable::Start DocumentTable::start(std::uint64_t document) const noexcept {
  if (document == documents_) return {tokens_, 0};
  const Block& block = blocks_[document / kBlock];
  const std::uint64_t i = document % kBlock;
  if (block.is_even) return {block.token + i * block.tokens_each, block.byte + i * block.bytes_each};
  const std::uint64_t at = block.at + i * per_document();
  const auto value = [&](std::uint64_t k) { return block.is_wide ? wide_[k] : narrow_[k]; };
  return {block.token + value(at), knows_bytes_ ? block.byte + value(at + 1) : 0};
}

DocumentTable::Document DocumentTable::at(std::uint64_t document) const noexcept {
  const Start from = start(document);
  return {from.token, start(document + 1).token - from.token, from.byte};
}

// The last document that begins at or before the token: those before it that begin there too are empty.
std::uint64_t DocumentTable::find(std::uint64_t token) const noexcept {
  const auto begins_after = [](std::uint64_t value, const Block& block) { return value < block.token; };
  const auto after = std::upper_bound(blocks_.begin(), blocks_.end(), token, begins_after);
  const auto number = static_cast<std::uint64_t>(after - blocks_.begin());
  std::uint64_t low = (number - 1) * kBlock;
  std::uint64_t high = std::min(number * kBlock, documents_);
  while (high - low > 1) {
    const std::uint64_t middle = low + (high - low) / 2;
    (start(middle).token <= token ? low : high) = middle;
  }
  return low;
}

std::uint64_t DocumentTable::memory() const noexcept {
  return blocks_.capacity() * sizeof(Block) + narrow_.capacity() * sizeof(std::uint32_t) +
         wide_.capacity() * sizeof(std::uint64_t);
}

}  // namespace penstock::layout
