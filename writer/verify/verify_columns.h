// ColumnsCheck: whether a shard's columns.bin is what its manifest says, as its bytes pass by.
//
// One thread at a time. No memory to speak of.
#pragma once

#include "core/base/digest.h"
#include "layout/dataset/manifest.h"
#include "writer/verify/verify_index.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace penstock::writer {

class ColumnsCheck {
 public:
  /// What is not as it should be is told to `tell`. `format` and `shard` outlive it.
  ColumnsCheck(std::string path, const layout::Format& format, const layout::ShardInfo& shard, const TellProblem& tell);

  /// The next bytes of the file.
  void update(std::span<const std::byte> part);
  /// After the last ones.
  void finish();

 private:
  void take(std::span<const std::byte> part);
  void take_codes(std::span<const std::byte> part);
  template <typename T>
  void check_codes(std::span<const std::byte> codes);

  std::string path_;
  const layout::Format& format_;
  const layout::ShardInfo& shard_;
  const TellProblem& tell_;
  std::vector<layout::ColumnPlace> places_;
  std::vector<Digest> digests_;
  std::vector<bool> codes_fine_;
  std::vector<std::byte> held_;  // a code that was cut by the end of a part
  std::uint64_t at_ = 0;         // byte of the file
  std::size_t column_ = 0;       // that this byte is of, or lies before
};

}  // namespace penstock::writer
