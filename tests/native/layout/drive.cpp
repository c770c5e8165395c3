#include "tests/native/layout/drive.h"

#include "core/io/local/local_store.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

namespace penstock::testing {
namespace {

// Rows whose length the source sets get their place once it is known, as in the engine.
void place(const Source& source, Driven& out, Parts wanted) {
  if (!has(wanted, Parts::Records)) return;
  const std::uint64_t bytes = source.info().stored_record_bytes;
  const RowShape shape = source.info().shape;
  out.memory.assign((shape.lead + out.row.length + shape.tail) * bytes + 1, std::byte{0xEE});
  out.row.records = out.memory.data() + shape.lead * bytes;
}

}  // namespace

Location local(const std::string& path) {
  static const auto store = std::make_shared<LocalStore>();
  return {store, path};
}

std::vector<Location> local(const std::vector<std::string>& paths) {
  std::vector<Location> found;
  found.reserve(paths.size());
  for (const std::string& path : paths) found.push_back(local(path));
  return found;
}

void write_file(const std::string& path, std::span<const std::byte> bytes) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  if (!file.flush()) throw std::runtime_error("cannot write " + path);
}

std::uint64_t Driven::bytes_read(const std::string& suffix) const {
  std::uint64_t bytes = 0;
  for (const Read& read : reads) bytes += read.file->path().ends_with(suffix) ? read.size : 0;
  return bytes;
}

std::size_t Driven::reads_of(const std::string& suffix) const {
  return static_cast<std::size_t>(
      std::count_if(reads.begin(), reads.end(), [&](const Read& read) { return read.file->path().ends_with(suffix); }));
}

void perform(const Read& read) {
  ASSERT_LE(read.offset + read.size, read.file->bytes) << read.file->path();
  ASSERT_GT(read.size, 0U);
  const int descriptor = ::open(read.file->path().c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_GE(descriptor, 0) << read.file->path();
  EXPECT_EQ(::pread(descriptor, read.destination, read.size, static_cast<off_t>(read.offset)),
            static_cast<ssize_t>(read.size))
      << read.file->path();
  ::close(descriptor);
}

void drive(const Source& source, std::uint64_t index, Driven& out, Parts wanted) {
  const RowShape shape = source.info().shape;
  out.row.index = index;
  out.row.length = shape.length;
  if (!shape.ragged) place(source, out, wanted);
  for (bool more = true; more; ++out.rounds) {
    ASSERT_LT(out.rounds, 200U);
    Reads reads;
    const bool was_measured = out.row.measured;
    more = source.plan(out.row, out.rounds, wanted, reads);
    if (shape.ragged && out.row.measured && !was_measured) {
      ASSERT_TRUE(more && reads.empty()) << "the round that measures plans nothing";
      place(source, out, wanted);
    }
    for (const Read& read : reads) {
      perform(read);
      out.reads.push_back(read);
    }
  }
  if (has_spans(wanted)) source.spans(out.row, out.row.spans);
}

std::uint64_t drive_all(const Source& source, std::uint64_t step) {
  std::uint64_t refused = 0;
  for (std::uint64_t i = 0; i < source.info().size; i += step) {
    Driven out;
    try {
      drive(source, i, out);
      for (const Span& span : out.row.spans) {
        EXPECT_LE(span.start, span.stop);
        EXPECT_LE(span.stop, out.row.length);
      }
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::Corruption) << error.what();
      ++refused;
    }
  }
  return refused;
}

}  // namespace penstock::testing
