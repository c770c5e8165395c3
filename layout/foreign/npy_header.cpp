#include "layout/foreign/npy_header.h"

#include "core/base/error.h"
#include "layout/reading/reads.h"

#include <nlohmann/json.hpp>

#include <cstring>
#include <string_view>

namespace penstock::layout {
namespace {

using nlohmann::json;

constexpr std::string_view kNpyMagic = "\x93NUMPY";
constexpr std::uint64_t kMaxNpyHeaderBytes = 64U << 10;
constexpr int kMaxDepth = 64;  // nlohmann's dump() recurses

// Turns the literals that NumPy writes (dicts, lists, tuples, plain strings, integers, True, False) into JSON text.
class Literal {
 public:
  explicit Literal(std::string_view text) : text_(text) {}

  /// "" for what is none; the JSON parser finds what else is wrong.
  std::string json() {
    for (; at_ < text_.size(); ++at_) {
      if (!(quote_ != 0 ? take_quoted(text_[at_]) : take(text_[at_]))) return {};
    }
    return std::move(out_);
  }

 private:
  // False: it is no literal.
  bool take_quoted(char c) {
    if (c == '\\' || (c == '"' && quote_ != '"')) return false;
    if (c == quote_) quote_ = 0;
    out_ += quote_ == 0 ? '"' : c;
    return true;
  }

  bool take(char c) {
    switch (c) {
      case '\'':
      case '"':
        quote_ = c;
        out_ += '"';
        return true;
      case '(':
      case '[':
      case '{': out_ += c == '{' ? '{' : '['; return ++depth_ <= kMaxDepth;
      case ')':
      case ']':
      case '}': close(c == '}' ? '}' : ']'); return true;
      case ' ':
      case '\t':
      case '\r':
      case '\n': return true;
      default: take_word(c); return true;
    }
  }

  void close(char bracket) {
    --depth_;
    if (!out_.empty() && out_.back() == ',') out_.pop_back();  // Python allows a last comma, and (1,) needs it
    out_ += bracket;
  }

  void take_word(char c) {
    const bool is_true = text_.substr(at_, 4) == "True";
    if (!is_true && text_.substr(at_, 5) != "False") {
      out_ += c;
      return;
    }
    out_ += is_true ? "true" : "false";
    at_ += is_true ? 3 : 4;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::string out_;
  int depth_ = 0;
  char quote_ = 0;
};

[[noreturn]] void refuse(const ForeignFile& file, ErrorKind kind, const std::string& why) {
  raise(kind, "{}: {}", file.path(), why);
}

NpyHeader parse(const ForeignFile& file, std::string_view literal) {
  const json dict = json::parse(Literal(literal).json(), nullptr, false);
  if (!dict.is_object() || !dict.contains("descr") || !dict.contains("shape") || !dict["shape"].is_array()) {
    refuse(file, ErrorKind::Corruption, "its NumPy header is not a dict with 'descr' and 'shape'");
  }
  const json& shape = dict["shape"];
  if (shape.size() != 1 || !shape[0].is_number_unsigned()) {
    refuse(file, ErrorKind::InvalidArgument,
           fmt::format("an array of shape {}, a one-dimensional one is wanted: save array.reshape(-1)",
                       excerpt(shape.dump())));
  }
  const json& descr = dict["descr"];
  NpyHeader header;
  header.descr_json = descr.is_array() ? descr.dump() : json::array({json::array({"token", descr})}).dump();
  header.count = shape[0].get<std::uint64_t>();
  return header;
}

}  // namespace

bool is_npy(std::span<const std::byte> head) {
  return head.size() >= kNpyMagic.size() && std::memcmp(head.data(), kNpyMagic.data(), kNpyMagic.size()) == 0;
}

NpyHeader read_npy_header(const ForeignFile& file) {
  const std::vector<std::byte> start = file.head(12);
  if (start.size() < 12) refuse(file, ErrorKind::Corruption, "its NumPy header is truncated");
  const unsigned major = std::to_integer<unsigned>(start[6]);
  if (major < 1 || major > 3) {
    refuse(file, ErrorKind::InvalidArgument, fmt::format("NumPy format version {}, versions 1 to 3 are known", major));
  }
  const std::uint64_t begin = major == 1 ? 10 : 12;
  const std::uint64_t size = major == 1 ? load<std::uint16_t>(&start[8]) : load<std::uint32_t>(&start[8]);
  if (size > kMaxNpyHeaderBytes || size > file.bytes() - begin) {
    refuse(file, ErrorKind::Corruption,
           fmt::format("a NumPy header of {} bytes in a file of {}", with_commas(size), with_commas(file.bytes())));
  }
  std::string literal(size, '\0');
  file.read(begin, std::as_writable_bytes(std::span(literal)));
  NpyHeader header = parse(file, literal);
  header.data_offset = begin + size;
  return header;
}

}  // namespace penstock::layout
