// PackTableWriter: packs a dataset's documents into a table file (layout/packed/pack_table.h), some at a time.
//
// One thread at a time. Memory: 8 bytes a row, and the pieces of one step. The file appears under its name once all of
// it is on the disk. An unfinished one is removed; where that fails the error names it, and the next writer of the same
// path removes it.
#pragma once

#include "core/base/error.h"
#include "layout/packed/pack_table.h"
#include "writer/folder/system.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace penstock::writer {

class PackTableWriter {
 public:
  /// Begins the file at `path`, of all documents or, as DatasetPacker has it, of those that were chosen. Throws as
  /// DatasetPacker does; InvalidArgument if the file is there or a condition too long, NotFound if its folder is not,
  /// IoError.
  PackTableWriter(layout::DatasetPtr dataset, const layout::PackingRule& rule, StoreChoice through, std::string path,
                  std::shared_ptr<const Chosen> chosen = nullptr, std::string where = {});
  ~PackTableWriter();
  PackTableWriter(const PackTableWriter&) = delete;
  PackTableWriter& operator=(const PackTableWriter&) = delete;

  /// As DatasetPacker::step().
  bool step(std::uint64_t documents);
  [[nodiscard]] std::uint64_t done() const noexcept { return packer_.done(); }
  /// After the last step: finishes the file. Returns what it says of itself. Throws InvalidArgument for one without
  /// rows.
  layout::PackHeader commit();

 private:
  [[noreturn]] void give_up(const Error& error);
  bool pack(std::uint64_t documents);
  layout::PackHeader finish();
  void append(std::span<const std::byte> bytes);
  void pad();

  const std::string path_;
  const std::string name_;
  std::string partial_;
  layout::DatasetPacker packer_;
  std::string where_;  // the text behind the checks, if there is one
  Descriptor folder_;
  Descriptor file_;
  bool is_there_ = false;  // under its partial name
  std::uint64_t pieces_ = 0;
  std::uint64_t written_ = 0;
  std::vector<std::byte> block_;  // of what is checked, not whole yet
  std::vector<std::uint32_t> checks_;
};

}  // namespace penstock::writer
