// TokenDocuments: a token stream as a dataset of documents, each of which a token ends or begins.
//
// Every token is read once. A document lies in one shard: a shard's first and last ones may lack the token. One thread
// at a time; waits for reads.
#pragma once

#include "core/io/byte_store.h"
#include "layout/dataset.h"
#include "layout/documents/document_table.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace penstock::layout {

class BlockReader;

/// Which token bounds documents, and on which side of it.
struct TokenRule {
  bool ends = true;   // the token is a document's last one, else its first
  std::string field;  // of the tokens
  std::uint64_t token = 0;
};

class TokenDocuments {
 public:
  /// Throws InvalidArgument: a dataset that has documents, or no stream; no field of single integers of this name.
  TokenDocuments(DatasetPtr dataset, TokenRule rule, StoreChoice through);
  ~TokenDocuments();
  TokenDocuments(const TokenDocuments&) = delete;
  TokenDocuments& operator=(const TokenDocuments&) = delete;

  /// Looks at about `records` more; false once all were looked at. Throws NotFound, IoError, Corruption.
  bool step(std::uint64_t records);

  /// How many records have the token, and whether the stream's first and last ones do.
  [[nodiscard]] std::uint64_t found() const noexcept { return found_; }
  [[nodiscard]] bool first_has() const noexcept { return first_has_; }
  [[nodiscard]] bool last_has() const noexcept { return last_has_; }

  /// Shards that begin with the token which ends documents, or end with the one that begins them.
  [[nodiscard]] const std::vector<std::size_t>& doubtful() const noexcept { return doubtful_; }

  /// The dataset, whose fingerprint tells the rule and the documents. After the last step.
  [[nodiscard]] DatasetPtr dataset() const;

 private:
  void begin_shard();
  void end_shard();
  void look(std::span<const std::byte> records, std::uint64_t count);
  void cut(std::uint64_t at);

  const DatasetPtr base_;
  const TokenRule rule_;
  const StoreChoice through_;
  std::uint64_t stride_bytes_ = 0;  // from one token to the next
  std::uint64_t offset_bytes_ = 0;  // of a record's token
  std::uint32_t item_bytes_ = 0;
  std::shared_ptr<Dataset> made_;
  Digest digest_;  // of the documents' lengths
  std::uint64_t found_ = 0;
  bool first_has_ = false;
  bool last_has_ = false;
  std::vector<std::size_t> doubtful_;

  std::size_t shard_ = 0;    // which is looked at …
  std::uint64_t at_ = 0;     // … from this record on
  std::uint64_t begin_ = 0;  // of the open document
  std::shared_ptr<DocumentTable> table_;
  std::unique_ptr<BlockReader> reader_;
};

}  // namespace penstock::layout
