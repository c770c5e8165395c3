// OLMo's documents (dolma, tokens and tokenizer/memmap_writer.py): a .csv.gz beside a .npy, without a header line: one
// row a document: start, end (tokens, exclusive), id, source, location. Its first two fields are read.
#include "core/base/error.h"
#include "layout/documents/document_table.h"
#include "layout/foreign/foreign_file.h"
#include "layout/foreign/token_files.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace penstock::layout {
namespace {

constexpr std::string_view kStream = ".npy";
constexpr std::string_view kDocuments = ".csv.gz";
constexpr std::uint64_t kInputBytes = 1U << 20;
constexpr std::size_t kOutputBytes = std::size_t{1} << 18;

// Rows of numbers from pieces of the text. Quoted fields may hold line breaks.
class Rows {
 public:
  Rows(std::string path, std::uint64_t tokens, DocumentTable& table)
      : path_(std::move(path)), tokens_(tokens), table_(table) {}

  void take(std::string_view text) {
    for (const char each : text) take(each);
  }
  void finish() {
    if (is_quoted_) fail("its last row is cut off");
    if (field_ > 0 || digits_ > 0) end_row();
    if (last_ != tokens_) {
      raise(ErrorKind::Corruption, "{}: its {} documents end at token {} of {}", path_, with_commas(table_.documents()),
            with_commas(last_), with_commas(tokens_));
    }
    table_.finish();
  }

 private:
  void take(char each) {
    if (each == '"' && field_ >= 2) {
      is_quoted_ = !is_quoted_;
    } else if (is_quoted_) {
      return;
    } else if (each == '\n') {
      if (field_ > 0 || digits_ > 0) end_row();
    } else if (each == ',') {
      end_field();
    } else if (field_ < 2 && each != '\r') {
      if (each < '0' || each > '9' || ++digits_ > 18) fail("a row does not begin with two numbers");
      value_ = 10 * value_ + static_cast<std::uint64_t>(each - '0');
    }
  }
  void end_field() {
    if (field_ < 2) {
      if (digits_ == 0) fail("a row does not begin with two numbers");
      bounds_[field_] = value_;
    }
    ++field_;
    value_ = digits_ = 0;
  }
  void end_row() {
    end_field();
    if (field_ < 2) fail("a row has one field, start and end are wanted");
    const auto [start, end] = bounds_;
    if (start != last_ || end < start || end > tokens_) {
      raise(ErrorKind::Corruption,
            "{}: document {} has tokens {} to {}, after token {} of {}: documents that do not follow one another: "
            "format=\"raw\" opens the tokens without them",
            path_, with_commas(table_.documents()), with_commas(start), with_commas(end), with_commas(last_),
            with_commas(tokens_));
    }
    table_.add(end - start);
    last_ = end;
    field_ = 0;
  }
  [[noreturn]] void fail(const char* why) const {
    raise(ErrorKind::Corruption,
          "{}: after {} documents: {}: no list of OLMo's documents (format=\"raw\" opens the "
          "tokens without it)",
          path_, with_commas(table_.documents()), why);
  }

  std::string path_;
  std::uint64_t tokens_;
  DocumentTable& table_;
  std::uint64_t last_ = 0;
  std::size_t field_ = 0;
  std::uint64_t value_ = 0;
  std::uint64_t digits_ = 0;
  bool is_quoted_ = false;
  std::array<std::uint64_t, 2> bounds_{};
};

// gzip's members, one after the other.
class Inflater {
 public:
  explicit Inflater(std::string path) : path_(std::move(path)) {
    constexpr int kGzip = 15 + 16;
    if (inflateInit2(&stream_, kGzip) != Z_OK) throw std::bad_alloc();
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  template <typename Use>
  void take(std::span<std::byte> bytes, const Use& use) {
    stream_.next_in = reinterpret_cast<Bytef*>(bytes.data());
    stream_.avail_in = static_cast<uInt>(bytes.size());
    do {
      if (is_done_ && stream_.avail_in > 0) {
        inflateReset(&stream_);
        is_done_ = false;
      }
      stream_.next_out = reinterpret_cast<Bytef*>(out_.data());
      stream_.avail_out = static_cast<uInt>(out_.size());
      const int result = inflate(&stream_, Z_NO_FLUSH);
      use(std::string_view(out_.data(), out_.size() - stream_.avail_out));
      if (result == Z_STREAM_END) {
        is_done_ = true;
      } else if (result != Z_OK && result != Z_BUF_ERROR) {
        raise(ErrorKind::Corruption, "{}: no gzip file, or a damaged one: {}", path_,
              stream_.msg != nullptr ? stream_.msg : "wrong data");
      }
    } while (stream_.avail_in > 0 || (!is_done_ && stream_.avail_out == 0));
  }
  void finish() const {
    if (!is_done_) raise(ErrorKind::Corruption, "{}: its gzip data is cut off", path_);
  }

 private:
  std::string path_;
  z_stream stream_{};
  std::vector<char> out_ = std::vector<char>(kOutputBytes);
  bool is_done_ = false;
};

std::shared_ptr<const DocumentTable> read_documents(const ForeignFile& file, std::uint64_t tokens, Digest& digest) {
  auto table = std::make_shared<DocumentTable>(false);
  Rows rows(file.path(), tokens, *table);
  Inflater inflater(file.path());
  std::vector<std::byte> bytes;
  for (std::uint64_t at = 0; at < file.bytes(); at += bytes.size()) {
    bytes.resize(std::min(kInputBytes, file.bytes() - at));
    file.read(at, bytes);
    digest.update(bytes);
    inflater.take(bytes, [&](std::string_view text) { rows.take(text); });
  }
  inflater.finish();
  rows.finish();
  return table;
}

std::string without(const std::string& path, std::string_view suffix) {
  return path.ends_with(suffix) ? path.substr(0, path.size() - suffix.size()) : path;
}

}  // namespace

std::string olmo_path(const std::string& path) {
  return path.ends_with(kDocuments) ? without(path, kDocuments).append(kStream) : path;
}

std::string olmo_documents_path(const std::string& path) {
  return without(path, kStream).append(kDocuments);
}

DatasetPtr open_olmo(const std::vector<Location>& files, const std::string& descr_json) {
  auto dataset = std::make_shared<Dataset>(*open_raw(files, descr_json));
  Digest digest;
  digest.update("penstock olmo\n" + dataset->fingerprint + "\n");
  for (std::size_t i = 0; i < files.size(); ++i) {
    Shard& shard = dataset->shards[i];
    const ForeignFile documents({files[i].store, olmo_documents_path(files[i].path)});
    shard.table = read_documents(documents, shard.records, digest);
    shard.spans = shard.table->documents();
  }
  dataset->kind = "olmo";
  dataset->spans = SpanKind::Bounds;
  return finish_foreign(std::move(dataset), digest);
}

}  // namespace penstock::layout
