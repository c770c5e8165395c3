#include "writer/shards/column_writer.h"

#include "core/base/digest.h"
#include "core/base/error.h"
#include "layout/dataset/format.h"
#include "writer/files/input_file.h"
#include "writer/files/output_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace penstock::writer {
namespace {

constexpr std::size_t kColumnBufferBytes = 64U << 10;

template <typename T>
void narrow(std::span<const std::byte> codes, std::vector<std::byte>& out) {
  const std::size_t count = codes.size() / sizeof(std::int32_t);
  out.resize(count * sizeof(T));
  for (std::size_t i = 0; i < count; ++i) {
    std::int32_t code = 0;
    std::memcpy(&code, codes.data() + i * sizeof(code), sizeof(code));
    const auto stored = static_cast<T>(code);
    std::memcpy(out.data() + i * sizeof(T), &stored, sizeof(T));
  }
}

void narrow(std::span<const std::byte> codes, std::uint64_t bytes, std::vector<std::byte>& out) {
  switch (bytes) {
    case 1: return narrow<std::int8_t>(codes, out);
    case 2: return narrow<std::int16_t>(codes, out);
    default: return narrow<std::int32_t>(codes, out);
  }
}

}  // namespace

ColumnWriter::ColumnWriter(int at, std::string path, ValueTypes types, const std::vector<layout::Categories>& first)
    : at_(at), path_(std::move(path)), types_(std::move(types)), categories_(types_.size()) {
  for (std::size_t c = 0; c < types_.size(); ++c) {
    const std::string name = fmt::format("column-{}", c);
    gathered_.push_back({name, create_file(at_, name, path_ + "/" + name), {}, 0});
    gathered_.back().buffer.reserve(kColumnBufferBytes);
    if (c >= first.size()) continue;
    categories_[c].names = first[c];
    for (std::size_t i = 0; i < first[c].size(); ++i) categories_[c].code_of.push_back(static_cast<std::int32_t>(i));
  }
}

void ColumnWriter::flush(Gathered& column) {
  write_all(column.file.get(), column.buffer, column.written, path_ + "/" + column.name);
  column.written += column.buffer.size();
  column.buffer.clear();
}

// The shard's own number of a name, in the order of their first appearance.
std::int32_t ColumnWriter::code(Category& category, const layout::Categories& names, std::int32_t number) const {
  if (number < 0) return -1;
  const auto at = static_cast<std::size_t>(number);
  if (at >= category.code_of.size()) category.code_of.resize(names.size(), -1);
  std::int32_t& code = category.code_of[at];
  if (code < 0) {
    code = static_cast<std::int32_t>(category.names.size());
    category.names.push_back(names[at]);
  }
  return code;
}

void ColumnWriter::add(const ColumnValues& values, std::uint64_t i, const std::vector<layout::Categories>& names) {
  for (std::size_t c = 0; c < types_.size(); ++c) {
    const std::uint64_t bytes = types_[c].bytes();
    std::span<const std::byte> value = values[c].subspan(i * bytes, bytes);
    std::int32_t number = 0;
    if (types_[c].is_category) {
      std::memcpy(&number, value.data(), sizeof(number));
      number = code(categories_[c], names[c], number);
      value = std::as_bytes(std::span(&number, 1));
    }
    Gathered& column = gathered_[c];
    if (column.buffer.size() + bytes > kColumnBufferBytes) flush(column);
    column.buffer.insert(column.buffer.end(), value.begin(), value.end());
    bytes_ += bytes;
  }
  ++entries_;
}

template <typename Take>
void ColumnWriter::read_back(const Gathered& column, const Take& take) const {
  InputFile file(path_ + "/" + column.name, column.written);
  file.take(column.written, take);
}

std::shared_ptr<const layout::ShardColumns> ColumnWriter::finish() {
  auto said = std::make_shared<layout::ShardColumns>();
  for (std::size_t c = 0; c < types_.size(); ++c) {
    const layout::Categories& names = categories_[c].names;
    said->categories.push_back(types_[c].is_category ? std::make_shared<const layout::Categories>(names) : nullptr);
  }
  const std::vector<layout::ColumnPlace> places = layout::column_places(types_, *said, entries_);
  OutputFile out(at_, layout::kColumnsName, path_ + "/" + layout::kColumnsName);
  std::vector<std::byte> stored;
  for (std::size_t c = 0; c < types_.size(); ++c) {
    Gathered& column = gathered_[c];
    flush(column);
    const std::array<std::byte, layout::kColumnAlignment> zeros{};
    out.write(std::span(zeros).first(places[c].offset - out.bytes()));
    Digest digest;
    read_back(column, [&](std::span<const std::byte> part) {
      if (types_[c].is_category) {
        narrow(part, places[c].value_bytes, stored);
        part = stored;
      }
      out.write(part);
      digest.update(part);
    });
    said->digests.push_back(digest.bytes());
    column.file.close(path_ + "/" + column.name);
    if (::unlinkat(at_, column.name.c_str(), 0) != 0) raise_system(errno, "remove", path_ + "/" + column.name);
  }
  out.finish();
  return said;
}

}  // namespace penstock::writer
