// DocumentTable: where the documents of a foreign file begin, in memory, for files that have no array of it: OLMo's
// compressed list, samples of MDS between their sizes.
//
// Blocks of documents of one size take no memory of their own; others 4 or 8 bytes a document, twice that if it knows
// bytes. Built by one thread, then immutable; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace penstock::layout {

class DocumentTable {
 public:
  /// `knows_bytes`: the documents' tokens lie apart in the file, each from a byte on that is told; else the tokens of
  /// all follow one another.
  explicit DocumentTable(bool knows_bytes) : knows_bytes_(knows_bytes) {}

  /// Appends a document. Bytes do not fall.
  void add(std::uint64_t tokens, std::uint64_t byte = 0);
  /// After the last one.
  void finish();

  struct Document {
    std::uint64_t token = 0;  // at which it begins
    std::uint64_t tokens = 0;
    std::uint64_t byte = 0;  // of the file at which its tokens lie
  };
  [[nodiscard]] Document at(std::uint64_t document) const noexcept;
  /// The document that has this token, which is one of those that there are.
  [[nodiscard]] std::uint64_t find(std::uint64_t token) const noexcept;

  [[nodiscard]] std::uint64_t documents() const noexcept { return documents_; }
  [[nodiscard]] std::uint64_t tokens() const noexcept { return tokens_; }
  [[nodiscard]] bool knows_bytes() const noexcept { return knows_bytes_; }
  /// Bytes of memory.
  [[nodiscard]] std::uint64_t memory() const noexcept;

 private:
  static constexpr std::uint64_t kBlock = 1024;
  struct Block {
    std::uint64_t token = 0;
    std::uint64_t byte = 0;
    bool is_even = false;
    bool is_wide = false;
    std::uint64_t tokens_each = 0;  // even: of a document …
    std::uint64_t bytes_each = 0;   // … and from one to the next
    std::uint64_t at = 0;           // else: of the first one's values in narrow_ or wide_, those of `token` and `byte`
  };
  struct Start {
    std::uint64_t token;
    std::uint64_t byte;
  };
  void close_block();
  [[nodiscard]] Start start(std::uint64_t document) const noexcept;
  [[nodiscard]] std::uint64_t per_document() const noexcept { return knows_bytes_ ? 2 : 1; }

  bool knows_bytes_;
  std::uint64_t documents_ = 0;
  std::uint64_t tokens_ = 0;
  std::vector<Block> blocks_;
  std::vector<std::uint32_t> narrow_;  // starts since the block's, by document: token, byte
  std::vector<std::uint64_t> wide_;    // the same where they do not fit
  std::vector<Start> open_;            // of the block that is not closed
};

}  // namespace penstock::layout
