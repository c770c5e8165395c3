#include "tests/fuzz/read_views.h"

#include "layout/documents/document_lengths.h"

#include <algorithm>
#include <vector>

namespace penstock::fuzz {
namespace {

constexpr std::uint64_t kMostRowBytes = 4 << 20;
constexpr std::uint64_t kMostRows = 6;
constexpr std::uint64_t kMostRefused = 3;
constexpr unsigned kMostRounds = 200;

// Has a sanitizer see that the bytes are there.
void touch(const std::byte* bytes, std::uint64_t count) {
  static std::vector<std::byte> seen;
  seen.assign(bytes, bytes + count);
}

void perform(const Read& read) {
  require(read.size > 0, "a read of nothing");
  require(read.offset <= read.file->bytes && read.size <= read.file->bytes - read.offset, "a read beyond its file");
  read.file->store()->read_small(read.file->path(), read.offset, {read.destination, read.size});
}

class RowDriver {
 public:
  RowDriver(const Source& source, Parts wanted, const LookAt& look_at)
      : source_(source), wanted_(wanted), look_at_(look_at) {
    row_.arena.bound_by(&bound_);
  }

  void read(std::uint64_t index) {
    const RowShape shape = source_.info().shape;
    bound_.restart(kMostRowBytes);
    row_.restart(index, shape.length);
    if (!shape.ragged) place();
    unsigned rounds = 0;
    for (bool more = true; more; ++rounds) {
      require(rounds < kMostRounds, "rounds without end");
      Reads reads;
      const bool was_measured = row_.measured;
      more = source_.plan(row_, rounds, wanted_, reads);
      if (shape.ragged && row_.measured && !was_measured) {
        require(more && reads.empty(), "a round that measures and reads");
        place();
      }
      for (const Read& read : reads) perform(read);
    }
    look();
  }

 private:
  void place() {
    const SourceInfo& info = source_.info();
    if (info.shape.ragged) require(row_.length <= info.identity.records, "a row longer than its dataset");
    if (!has(wanted_, Parts::Records)) return;
    const std::uint64_t records = info.shape.lead + row_.length + info.shape.tail;
    if (info.stored_record_bytes > 0 && records > kMostRowBytes / info.stored_record_bytes) {
      raise(ErrorKind::InvalidArgument, "a row of {} records", records);  // as the engine's bound does
    }
    memory_.assign(records * info.stored_record_bytes + 1, std::byte{0});
    row_.records = memory_.data() + info.shape.lead * info.stored_record_bytes;
  }
  void look() {
    const SourceInfo& info = source_.info();
    if (has_spans(wanted_)) source_.spans(row_, row_.spans);
    if (has_spans(wanted_) && look_at_) look_at_(row_.index, row_.spans);
    std::uint64_t begin = 0;
    for (const Span& span : row_.spans) {
      require(begin <= span.start && span.start <= span.stop && span.stop <= row_.length, "a span outside of its row");
      begin = span.start;
      if (span.raw != nullptr) touch(span.raw, span.raw_bytes);
    }
    if (!has(wanted_, Parts::Values) || row_.values == nullptr) return;
    for (std::uint64_t i = 0; i < row_.values->documents * info.values.size(); ++i) {
      touch(row_.values->at[i], info.values[i % info.values.size()].bytes());
    }
  }

  const Source& source_;
  const Parts wanted_;
  const LookAt& look_at_;
  ArenaBound bound_;
  Row row_;
  std::vector<std::byte> memory_;
};

}  // namespace

void put(testing::MemoryStore& store, const std::string& path, Input bytes) {
  store.put(path, {bytes.begin(), bytes.end()});
}

void put(testing::MemoryStore& store, const std::string& path, std::string_view bytes) {
  put(store, path, std::as_bytes(std::span(bytes)));
}

bool read_some(const Source& source, std::uint64_t first, const LookAt& look_at) {
  const std::uint64_t size = source.info().size;
  require(size > 0, "a view without observations");
  constexpr Parts kWanted[] = {Parts::All, Parts::Records, Parts::Spans | Parts::Values};
  RowDriver driver(source, kWanted[first % 3], look_at);
  std::uint64_t read = 0;
  std::uint64_t refused = 0;
  for (std::uint64_t i = 0; i < std::min(size, kMostRows) && refused < kMostRefused; ++i) {
    ++(accepts([&] { driver.read((first + i) % size); }) ? read : refused);
  }
  return read > 0;
}

bool read_views(const layout::DatasetPtr& dataset, std::uint64_t first, std::uint64_t window) {
  bool some = false;
  accepts([&] { some |= read_some(*layout::make_windows(dataset, window, 1), first); });
  accepts([&] {
    const std::shared_ptr<const Source> documents = layout::make_documents(dataset);
    if (first % 2 == 1 && documents->info().keeps) documents->info().keeps->grant(1 << 20);
    some |= read_some(*documents, first);
  });
  accepts([&] {
    layout::check_has_lengths(*dataset);
    std::vector<std::uint64_t> lengths(std::min<std::uint64_t>(dataset->span_count(), 1000));
    layout::read_document_lengths(*dataset, 0, lengths, {});
    for (const std::uint64_t length : lengths) require(length <= dataset->record_count(), "a length beyond the stream");
  });
  return some;
}

}  // namespace penstock::fuzz
