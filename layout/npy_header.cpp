#include "layout/npy_header.h"

#include "core/base/error.h"
#include "layout/reads.h"

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
// Returns
// "" for what is none; the JSON parser finds what else is wrong.
std::string to_json(std::string_view literal) {
  std::string out;
  int depth = 0;
  char quote = 0;
  for (std::size_t i = 0; i < literal.size(); ++i) {
    const char c = literal[i];
    if (quote != 0) {
      if (c == '\\' || (c == '"' && quote != '"')) return {};
      if (c == quote) quote = 0;
      out += quote == 0 ? '"' : c;
    } else if (c == '\'' || c == '"') {
      quote = c;
      out += '"';
    } else if (c == '(' || c == '[' || c == '{') {
      if (++depth > kMaxDepth) return {};
      out += c == '{' ? '{' : '[';
    } else if (c == ')' || c == ']' || c == '}') {
      --depth;
      if (!out.empty() && out.back() == ',') out.pop_back();  // Python allows a last comma, and (1,) needs it
      out += c == '}' ? '}' : ']';
    } else if (literal.substr(i, 4) == "True" || literal.substr(i, 5) == "False") {
      out += c == 'T' ? "true" : "false";
      i += c == 'T' ? 3 : 4;
    } else if (std::string_view(" \t\r\n").find(c) == std::string_view::npos) {
      out += c;
    }
  }
  return out;
}

[[noreturn]] void refuse(const ForeignFile& file, ErrorKind kind, const std::string& why) {
  raise(kind, "{}: {}", file.path(), why);
}

NpyHeader parse(const ForeignFile& file, std::string_view literal) {
  const json dict = json::parse(to_json(literal), nullptr, false);
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
