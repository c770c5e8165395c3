// Documents: the view whose observation i is span i of the dataset: its records and its entry.
//
// Where a document lies, a DocumentFinder says, one class for each way in which documents are stored; reading it is the
// same for all. Immutable; any thread.
#pragma once

#include "layout/dataset.h"

#include <cstdint>
#include <memory>

namespace penstock::layout {

/// Which document a row is, and where it lies once it is found. In the row's arena.
struct Document {
  std::uint64_t shard = 0;
  std::uint64_t number = 0;          // in the shard
  const std::byte* index = nullptr;  // what the finder read of the index first, in the arena …
  void* search = nullptr;            // … and what else it has to remember

  std::uint64_t first_record = 0;  // of the shard
  std::uint64_t records = 0;
  std::uint64_t entry_begin = 0;  // bytes of the shard's metadata.bin
  std::uint64_t entry_bytes = 0;
  const std::byte* raw = nullptr;  // the entry, if it was read
};

class DocumentFinder {
 public:
  DocumentFinder() = default;
  virtual ~DocumentFinder() = default;
  DocumentFinder(const DocumentFinder&) = delete;
  DocumentFinder& operator=(const DocumentFinder&) = delete;

  /// What it keeps of the metadata's files, or null.
  [[nodiscard]] virtual std::shared_ptr<Allowance> keeps() const noexcept { return nullptr; }
  /// Says that the document, which is one of a few, is about to be found: what is kept of it is fetched into the core's
  /// cache while others are found.
  virtual void expect(const Document& /*document*/) const {}
  /// Appends the reads of `round` that tell where the document lies. Returns false, with nothing appended, when the
  /// document's records are known, and its entry's bytes if Parts::Entries is `wanted`. Throws Corruption.
  virtual bool find(Row& row, const Shard& shard, unsigned round, Parts wanted, Document& document,
                    Reads& out) const = 0;
};

/// Throws Corruption if the sizes of the files cannot be.
std::unique_ptr<const DocumentFinder> make_compact_document_finder(const Dataset& dataset);
std::unique_ptr<const DocumentFinder> make_opaque_document_finder(const Dataset& dataset);
std::unique_ptr<const DocumentFinder> make_megatron_document_finder();
std::unique_ptr<const DocumentFinder> make_bounds_document_finder();

/// Throws InvalidArgument, in words that say why, unless the dataset has documents: not in the ids layout, nor in a
/// token stream.
void check_has_documents(const Dataset& dataset);

/// The finder of a dataset that has documents and is no file of field arrays.
std::unique_ptr<const DocumentFinder> make_document_finder(const Dataset& dataset);

class Documents final : public Source {
 public:
  /// Throws InvalidArgument and Corruption (see make_documents).
  explicit Documents(DatasetPtr dataset, const DocumentLimit& limit = {});

  [[nodiscard]] const SourceInfo& info() const override { return info_; }
  bool plan(Row& row, unsigned round, Parts wanted, Reads& out) const override;
  void spans(const Row& row, SpanTable& out) const override;
  [[nodiscard]] std::int64_t first_record(const Row& row, std::uint64_t index) const override;
  [[nodiscard]] Place place_of(std::uint64_t index) const override;

 private:
  DatasetPtr dataset_;
  const DocumentLimit limit_;
  std::unique_ptr<const DocumentFinder> finder_;
  SourceInfo info_;
};

}  // namespace penstock::layout
