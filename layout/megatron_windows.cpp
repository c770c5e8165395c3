// Windows of a Megatron dataset, its documents as spans without entries.
//
// The samples bound which documents can meet a piece. Stage 0 reads at which sequences those begin, stage 1 where these
// sequences begin in the .bin, one range of each block of samples; stage 2 checks what was read.
#include "core/base/error.h"
#include "layout/megatron.h"
#include "layout/reads.h"
#include "layout/windows.h"

#include <algorithm>

namespace penstock::layout {
namespace {

using Samples = std::span<const MegatronSample>;

struct MegatronPiece {
  Piece piece;
  Samples samples;                       // the blocks that the piece meets, and the sample after them
  const std::byte* documents = nullptr;  // stage 0: the first sequence of each of their documents
  const std::byte** pointers = nullptr;  // stage 1: of each block, from its first sequence on
  std::uint64_t* tokens = nullptr;       // stage 2: where each document begins, and the one after them

  [[nodiscard]] std::uint64_t first_document() const noexcept { return samples.front().document; }
  [[nodiscard]] std::uint64_t document_count() const noexcept { return samples.back().document - first_document(); }
  [[nodiscard]] std::uint64_t sequence(std::uint64_t document) const noexcept {
    return load_at<std::uint64_t>(documents, document - first_document());
  }
};

struct State {
  MegatronPiece* pieces;
  std::uint64_t count;
};

class MegatronWindows final : public Windows {
 public:
  using Windows::Windows;
  bool plan(Row& row, unsigned stage, Reads& out) const override;
  void spans(Row& row) const override;

 private:
  void plan_first(Row& row, Reads& out) const;
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

void MegatronWindows::plan_first(Row& row, Reads& out) const {
  const std::span<Piece> pieces = cut(row);
  auto* parts = row.arena.make_array<MegatronPiece>(pieces.size());
  row.state = row.arena.make<State>(parts, pieces.size());
  for (const Piece& piece : pieces) {
    const MegatronIndex& index = *shard(piece).megatron;
    MegatronPiece& part = *parts++;
    plan_records(row, piece, piece.first, piece.stop, out);
    part.piece = piece;
    part.samples = samples_around(index, piece);
    part.documents = plan_read(row, shard(piece).index, index.documents_offset + 8 * part.first_document(),
                               8 * part.document_count(), out);
  }
}

void MegatronWindows::plan_pointers(Row& row, MegatronPiece& part, Reads& out) const {
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

void MegatronWindows::find_tokens(Row& row, MegatronPiece& part) const {
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

bool MegatronWindows::plan(Row& row, unsigned stage, Reads& out) const {
  if (stage == 0) {
    plan_first(row, out);
    return true;
  }
  const State& state = *static_cast<const State*>(row.state);
  for (MegatronPiece& part : std::span(state.pieces, state.count)) {
    if (stage == 1) plan_pointers(row, part, out);
    if (stage == 2) find_tokens(row, part);
  }
  return stage < 2;
}

void append_spans(const MegatronPiece& part, std::vector<Span>& out) {
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

void MegatronWindows::spans(Row& row) const {
  const State& state = *static_cast<const State*>(row.state);
  for (const MegatronPiece& part : std::span(state.pieces, state.count)) append_spans(part, row.spans);
}

}  // namespace

std::shared_ptr<const Source> make_megatron_windows(DatasetPtr dataset, std::uint64_t window, std::uint64_t lookahead) {
  return std::make_shared<MegatronWindows>(std::move(dataset), window, lookahead);
}

}  // namespace penstock::layout
