// The documents of a Megatron dataset as spans; they have no entries.
//
// The samples bound which documents can meet a piece. Round 0 reads at which sequences those begin, round 1 where these
// sequences begin in the .bin, one range of each block of samples; round 2 checks what was read.
#include "core/base/error.h"
#include "layout/foreign/megatron.h"
#include "layout/reading/reads.h"
#include "layout/windows/span_finder.h"

#include <algorithm>

namespace penstock::layout {
namespace {

using Samples = std::span<const MegatronSample>;

struct MegatronPiece {
  Piece piece;
  Samples samples;                       // the blocks that the piece meets, and the sample after them
  const std::byte* documents = nullptr;  // round 0: the first sequence of each of their documents
  const std::byte** pointers = nullptr;  // round 1: of each block, from its first sequence on
  std::uint64_t* tokens = nullptr;       // round 2: where each document begins, and the one after them

  [[nodiscard]] std::uint64_t first_document() const noexcept { return samples.front().document; }
  [[nodiscard]] std::uint64_t document_count() const noexcept { return samples.back().document - first_document(); }
  [[nodiscard]] std::uint64_t sequence(std::uint64_t document) const noexcept {
    return load_at<std::uint64_t>(documents, document - first_document());
  }
};

class MegatronFinder final : public SpanFinder {
 public:
  using SpanFinder::SpanFinder;
  bool plan(Row& row, CutRow& cut, unsigned round, Parts wanted, Reads& out) const override;
  void spans(const CutRow& cut, SpanTable& out) const override;

 private:
  void plan_documents(Row& row, CutRow& cut, Reads& out) const;
  void plan_pointers(Row& row, MegatronPiece& part, Reads& out) const;
  void find_tokens(Row& row, MegatronPiece& part) const;
};

// The last sample at or before the piece's first token, to the first at or after its end.
Samples samples_around(const MegatronIndex& index, const Piece& piece) {
  const auto begins_after = [](std::uint64_t token, const MegatronSample& sample) { return token < sample.token; };
  const auto ends_before = [](const MegatronSample& sample, std::uint64_t token) { return sample.token < token; };
  const Samples all(index.samples);
  const auto low = std::upper_bound(all.begin(), all.end(), piece.first, begins_after) - 1;
  const auto high = std::lower_bound(low, all.end(), piece.stop, ends_before);
  return {low, high + 1};
}

void MegatronFinder::plan_documents(Row& row, CutRow& cut, Reads& out) const {
  auto* parts = row.arena.make_array<MegatronPiece>(cut.pieces.size());
  cut.found = parts;
  for (const Piece& piece : cut.pieces) {
    const MegatronIndex& index = *shard(piece).megatron;
    MegatronPiece& part = *parts++;
    part.piece = piece;
    part.samples = samples_around(index, piece);
    part.documents = plan_read(row, shard(piece).index, index.documents_offset + 8 * part.first_document(),
                               8 * part.document_count(), out);
  }
}

void MegatronFinder::plan_pointers(Row& row, MegatronPiece& part, Reads& out) const {
  const Shard& shard = this->shard(part.piece);
  part.pointers = row.arena.make_array<const std::byte*>(part.samples.size());
  for (std::size_t i = 0; i + 1 < part.samples.size(); ++i) {
    const MegatronSample& from = part.samples[i];
    const MegatronSample& to = part.samples[i + 1];
    std::uint64_t last = from.sequence;
    for (std::uint64_t document = from.document; document < to.document; ++document) {
      const std::uint64_t sequence = part.sequence(document);
      if (sequence < last || sequence > to.sequence || (document == from.document && sequence != from.sequence)) {
        raise(ErrorKind::Corruption, "{}: document {} begins at sequence {}: the file changed after it was opened",
              shard.index.path(), document, sequence);
      }
      last = sequence;
    }
    // Where the block's first document begins, its sample says; a last one without sequences has no pointer.
    const std::uint64_t stop = std::min(last + 1, shard.megatron->sequences);
    const std::uint64_t count = to.document - from.document > 1 ? stop - from.sequence : 0;
    part.pointers[i] = plan_read(row, shard.index, shard.megatron->pointers_offset + 8 * from.sequence, 8 * count, out);
  }
}

void MegatronFinder::find_tokens(Row& row, MegatronPiece& part) const {
  const Shard& shard = this->shard(part.piece);
  part.tokens = row.arena.make_array<std::uint64_t>(part.document_count() + 1);
  std::uint64_t* next = part.tokens;
  for (std::size_t i = 0; i + 1 < part.samples.size(); ++i) {
    const MegatronSample& from = part.samples[i];
    *next++ = from.token;
    for (std::uint64_t document = from.document + 1; document < part.samples[i + 1].document; ++document) {
      const std::uint64_t sequence = part.sequence(document);
      *next++ = sequence == shard.megatron->sequences
                    ? shard.records
                    : megatron_token(shard, part.pointers[i] + 8 * (sequence - from.sequence));
    }
  }
  *next++ = part.samples.back().token;
  if (!std::is_sorted(part.tokens, next)) {
    raise(ErrorKind::Corruption,
          "{}: documents {} to {} do not follow one another: the file changed after it was opened", shard.index.path(),
          part.first_document(), part.samples.back().document);
  }
}

bool MegatronFinder::plan(Row& row, CutRow& cut, unsigned round, Parts /*wanted*/, Reads& out) const {
  if (round == 0) {
    plan_documents(row, cut, out);
    return true;
  }
  for (MegatronPiece& part : std::span(static_cast<MegatronPiece*>(cut.found), cut.pieces.size())) {
    if (round == 1) plan_pointers(row, part, out);
    if (round == 2) find_tokens(row, part);
  }
  return round < 2;
}

void append_spans(const MegatronPiece& part, SpanTable& out) {
  const Piece& piece = part.piece;
  for (std::uint64_t i = 0; i < part.document_count(); ++i) {
    const std::uint64_t from = part.tokens[i];
    const std::uint64_t to = part.tokens[i + 1];
    if (from == to || to <= piece.first || from >= piece.stop) continue;
    const std::uint64_t start = std::max(from, piece.first);
    out.push_back({piece.at(start), piece.at(std::min(to, piece.stop)), from >= piece.first, to <= piece.stop,
                   static_cast<std::int64_t>(start - from), static_cast<std::uint32_t>(piece.shard),
                   part.first_document() + i, nullptr, 0});
  }
}

void MegatronFinder::spans(const CutRow& cut, SpanTable& out) const {
  const std::span parts(static_cast<const MegatronPiece*>(cut.found), cut.pieces.size());
  for (const MegatronPiece& part : parts) append_spans(part, out);
}

}  // namespace

std::unique_ptr<const SpanFinder> make_megatron_finder(DatasetPtr dataset) {
  return std::make_unique<MegatronFinder>(std::move(dataset));
}

}  // namespace penstock::layout
