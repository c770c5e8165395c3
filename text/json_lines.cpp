#include "text/json_lines.h"

#include "core/base/error.h"
#include "text/ids_in_line.h"
#include "text/json_values.h"
#include "text/twice.h"

#include <simdjson.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <string_view>
#include <utility>

namespace penstock::text {
namespace {

using simdjson::dom::element;
using simdjson::dom::element_type;

constexpr std::size_t kMostDepth = 256;
constexpr std::size_t kKeptBytes = std::size_t{16} << 20;  // lines whose parser is kept for the next one
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

// A key that is always there, as entries have it.
ByteVector written_key(const std::string& name, EntryCodec codec) {
  ByteVector out;
  if (codec == EntryCodec::Msgpack) {
    put_packed(out, name);
  } else {
    put_json_string(out, name);
    out.push_back(':');
  }
  return out;
}

}  // namespace

class JsonLines::Parser {
 public:
  explicit Parser(LineColumns columns) : columns_(std::move(columns)) {
    const auto is_kept = [this](const std::string& name) { return name == columns_.column; };
    const auto kept = columns_.metadata.value_or(std::vector<std::string>());
    if (columns_.is_ids && std::none_of(kept.begin(), kept.end(), is_kept)) ids_in_line_.emplace(columns_.column);
    if (!columns_.metadata) return;
    std::vector<std::string> once;  // a dict of Python's has each once, where it came first
    for (const std::string& name : *columns_.metadata) {
      if (std::find(once.begin(), once.end(), name) == once.end()) once.push_back(name);
    }
    for (const std::string& name : once) keys_.push_back(written_key(name, columns_.codec));
    columns_.metadata = std::move(once);
  }

  ParsedLines parse(const Pieces& lines);

 private:
  struct Field {
    std::string_view key;
    element value;
  };

  [[nodiscard]] bool take(std::string_view line, std::size_t behind);
  [[nodiscard]] bool read(std::string_view line, std::size_t behind, simdjson::dom::object& row);
  [[nodiscard]] bool take_without_ids(std::string_view line, const IdsInLine::Place& ids);
  [[nodiscard]] const element* find_payload(std::string_view line, std::size_t behind);
  [[nodiscard]] bool find_fields(simdjson::dom::object row);
  [[nodiscard]] bool take_payload(element value);
  [[nodiscard]] bool take_entry();  // writes nothing where it refuses
  void put_entry(std::size_t count);
  [[nodiscard]] bool choose_wanted();

  LineColumns columns_;
  std::vector<ByteVector> keys_;  // of the columns that are named
  simdjson::dom::parser parser_;
  simdjson::dom::document document_;
  std::vector<std::uint8_t> padded_;  // a line behind which the block ends
  std::optional<IdsInLine> ids_in_line_;
  std::string without_ids_;    // the line, and padding
  std::vector<Field> fields_;  // of the line
  std::vector<std::string_view> names_;
  std::vector<element> wanted_;  // of the line, what becomes metadata
  KeysTwice twice_;
  ParsedLines out_;
};

bool JsonLines::Parser::read(std::string_view line, std::size_t behind, simdjson::dom::object& row) {
  // Later versions of simdjson skip the mark, at which Python's parser fails.
  if (line.size() > simdjson::SIMDJSON_MAXSIZE_BYTES || line.starts_with(kByteOrderMark)) return false;
  if (line.size() > parser_.capacity()) {
    const std::size_t capacity =
        std::min(std::bit_ceil(std::max<std::size_t>(line.size(), 65536)), simdjson::SIMDJSON_MAXSIZE_BYTES);
    if (parser_.allocate(capacity, kMostDepth) != simdjson::SUCCESS) return false;
    if (document_.allocate(capacity) != simdjson::SUCCESS) return false;
  }
  const auto* data = reinterpret_cast<const std::uint8_t*>(line.data());
  if (behind < simdjson::SIMDJSON_PADDING) {
    padded_.assign(data, data + line.size());
    padded_.resize(line.size() + simdjson::SIMDJSON_PADDING);
    data = padded_.data();
  }
  return parser_.parse_into_document(document_, data, line.size(), false).get_object().get(row) == simdjson::SUCCESS;
}

bool JsonLines::Parser::find_fields(simdjson::dom::object row) {
  fields_.clear();
  names_.clear();
  for (auto at = row.begin(); at != row.end(); ++at) {
    fields_.push_back({at.key(), at.value()});
    names_.push_back(fields_.back().key);
  }
  if (KeysTwice::among(names_)) return false;
  // take_payload() takes a string, or a list of integers.
  return std::none_of(fields_.begin(), fields_.end(), [this](const Field& field) {
    return field.key != columns_.column && twice_.within(field.value);
  });
}

bool JsonLines::Parser::take_payload(element value) {
  if (!columns_.is_ids) {
    std::string_view text;
    if (value.get_string().get(text) != simdjson::SUCCESS) return false;
    put_bytes(out_.texts, text);
    return true;
  }
  simdjson::dom::array items;
  if (value.get_array().get(items) != simdjson::SUCCESS) return false;
  for (const element item : items) {
    if (item.type() != element_type::INT64) return false;
    out_.ids.push_back(known_as<std::int64_t>(item));
  }
  return true;
}

bool JsonLines::Parser::choose_wanted() {
  wanted_.clear();
  if (!columns_.metadata) return true;
  for (const std::string& name : *columns_.metadata) {
    const auto found =
        std::find_if(fields_.begin(), fields_.end(), [&name](const Field& field) { return field.key == name; });
    if (found == fields_.end()) return false;
    wanted_.push_back(found->value);
  }
  return true;
}

bool JsonLines::Parser::take_entry() {
  if (columns_.codec == EntryCodec::None) return true;
  if (!choose_wanted()) return false;
  if (!columns_.metadata) {
    std::erase_if(fields_, [this](const Field& field) { return field.key == columns_.column; });
  }
  const std::size_t count = columns_.metadata ? wanted_.size() : fields_.size();
  if (columns_.codec == EntryCodec::Raw) {
    if (count == 0) return false;
    std::string_view bytes;
    const element first = columns_.metadata ? wanted_.front() : fields_.front().value;
    if (first.get_string().get(bytes) != simdjson::SUCCESS) return false;
    put_bytes(out_.entries, bytes);
    return true;
  }
  put_entry(count);
  return true;
}

void JsonLines::Parser::put_entry(std::size_t count) {
  ByteVector& out = out_.entries;
  const bool is_json = columns_.codec == EntryCodec::Json;
  if (is_json) {
    out.push_back('{');
  } else {
    put_packed_map_head(out, count);
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (is_json && i != 0) out.push_back(',');
    if (columns_.metadata) {
      out.insert(out.end(), keys_[i].begin(), keys_[i].end());
    } else if (is_json) {
      put_json_string(out, fields_[i].key);
      out.push_back(':');
    } else {
      put_packed(out, fields_[i].key);
    }
    const element value = columns_.metadata ? wanted_[i] : fields_[i].value;
    if (is_json) {
      put_json_value(out, value);
    } else {
      put_packed_value(out, value);
    }
  }
  if (is_json) out.push_back('}');
}

const element* JsonLines::Parser::find_payload(std::string_view line, std::size_t behind) {
  simdjson::dom::object row;
  if (!read(line, behind, row) || !find_fields(row)) return nullptr;
  const auto found =
      std::find_if(fields_.begin(), fields_.end(), [this](const Field& field) { return field.key == columns_.column; });
  return found == fields_.end() ? nullptr : &found->value;
}

// The ids were appended.
bool JsonLines::Parser::take_without_ids(std::string_view line, const IdsInLine::Place& ids) {
  without_ids_.assign(line.substr(0, ids.begin)).append(line.substr(ids.end));
  const std::size_t size = without_ids_.size();
  without_ids_.append(simdjson::SIMDJSON_PADDING, '\0');
  return find_payload({without_ids_.data(), size}, simdjson::SIMDJSON_PADDING) != nullptr && take_entry();
}

bool JsonLines::Parser::take(std::string_view line, std::size_t behind) {
  if (ids_in_line_) {
    const std::size_t ids = out_.ids.size();
    if (const auto place = ids_in_line_->read(line, behind, out_.ids)) return take_without_ids(line, *place);
    out_.ids.resize(ids);
  }
  const element* const payload = find_payload(line, behind);
  return payload != nullptr && take_payload(*payload) && take_entry();
}

ParsedLines JsonLines::Parser::parse(const Pieces& lines) {
  out_ = {};
  const std::size_t count = lines.ends.size();
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < count; ++i) bytes += lines[i].size();
  // No text is longer than its line, and few lists have an id every four bytes. Pages that are not written are not
  // there.
  if (columns_.is_ids) {
    out_.ids.reserve(bytes / 4);
  } else {
    out_.texts.reserve(bytes);
  }
  out_.ends.reserve(count);
  if (columns_.codec != EntryCodec::None) out_.entry_ends.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t texts = out_.texts.size();
    const std::size_t ids = out_.ids.size();
    const std::string_view line = lines[i];
    if (!take(line, lines.bytes.size() - static_cast<std::size_t>(lines.ends[i]))) {
      out_.texts.resize(texts);
      out_.ids.resize(ids);
      out_.refused.push_back(static_cast<std::uint32_t>(i));
    }
    if (line.size() > kKeptBytes) {
      parser_ = simdjson::dom::parser();
      document_ = simdjson::dom::document();
      padded_ = {};
    }
    out_.ends.push_back(columns_.is_ids ? out_.ids.size() : out_.texts.size());
    if (columns_.codec != EntryCodec::None) out_.entry_ends.push_back(out_.entries.size());
  }
  return std::move(out_);
}

JsonLines::JsonLines(LineColumns columns) {
  const bool is_none = columns.metadata && columns.metadata->empty();
  if (is_none != (columns.codec == EntryCodec::None)) {
    raise(ErrorKind::InvalidArgument, "{}", is_none ? "a codec of metadata, and no columns" : "columns, and no codec");
  }
  parser_ = std::make_unique<Parser>(std::move(columns));
}

JsonLines::~JsonLines() = default;

ParsedLines JsonLines::parse(const Pieces& lines) {
  check_pieces(lines, "line");
  if (lines.ends.size() > std::numeric_limits<std::uint32_t>::max()) {
    raise(ErrorKind::InvalidArgument, "{} lines at once, at most 2^32 - 1", with_commas(lines.ends.size()));
  }
  return parser_->parse(lines);
}

}  // namespace penstock::text
