// Any bytes as a block of JSON lines, read as `penstock write` reads them: what is not refused is what another parser
// of JSON finds. The first byte says which columns are taken and how entries are stored.
#include "text/json_lines.h"

#include "tests/fuzz/targets.h"
#include "text/digested.h"
#include "text/lines.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace penstock::fuzz {
namespace {

using nlohmann::json;

text::LineColumns columns_of(std::size_t choice) {
  constexpr text::EntryCodec kCodecs[] = {text::EntryCodec::None, text::EntryCodec::Json, text::EntryCodec::Msgpack,
                                          text::EntryCodec::Raw};
  text::LineColumns columns;
  columns.is_ids = choice % 2 == 1;
  columns.column = columns.is_ids ? "input_ids" : "text";
  columns.codec = kCodecs[choice / 2 % 4];
  if (columns.codec == text::EntryCodec::None) {
    columns.metadata.emplace();
  } else if (choice / 8 % 2 == 1) {
    columns.metadata = {"url", "n"};
  }
  return columns;
}

template <typename T>
std::span<const T> piece(const std::vector<T>& all, const std::vector<std::uint64_t>& ends, std::size_t i) {
  const std::uint64_t begin = i == 0 ? 0 : ends[i - 1];
  require(begin <= ends[i] && ends[i] <= all.size(), "pieces that do not follow one another");
  return std::span(all).subspan(begin, ends[i] - begin);
}

json expected_entry(const json& row, const text::LineColumns& columns) {
  if (!columns.metadata) {
    json entry = row;
    entry.erase(columns.column);
    return entry;
  }
  json entry = json::object();
  for (const std::string& name : *columns.metadata) {
    require(row.contains(name), "an entry without a column that was asked for");
    entry[name] = row[name];
  }
  return entry;
}

void check_entry(const json& row, const text::LineColumns& columns, std::span<const std::uint8_t> bytes) {
  if (columns.codec == text::EntryCodec::None) return;
  const json expected = expected_entry(row, columns);
  if (columns.codec == text::EntryCodec::Raw) {
    const std::string raw(bytes.begin(), bytes.end());
    const auto is_it = [&](const json& value) {
      return value.is_string() && value.get_ref<const std::string&>() == raw;
    };
    require(std::ranges::any_of(expected, is_it), "a raw entry that is none of the line's texts");
    return;
  }
  const json found = columns.codec == text::EntryCodec::Json ? json::parse(bytes, nullptr, false)
                                                             : json::from_msgpack(bytes, true, false);
  require(!found.is_discarded() && found == expected, "another entry than the line has");
}

void check_line(std::string_view line, const text::LineColumns& columns, const text::ParsedLines& parsed,
                std::size_t i) {
  const json row = json::parse(line, nullptr, false);
  require(row.is_object() && row.contains(columns.column), "a line was read that is no JSON object with the column");
  const json& payload = row[columns.column];
  if (columns.is_ids) {
    const auto ids = piece(parsed.ids, parsed.ends, i);
    require(payload.is_array() &&
                std::ranges::equal(payload, ids,
                                   [](const json& a, std::int64_t b) { return a.is_number_integer() && a == b; }),
            "other ids than the line has");
  } else {
    const auto text = piece(parsed.texts, parsed.ends, i);
    require(payload.is_string() &&
                std::ranges::equal(payload.get_ref<const std::string&>(), text,
                                   [](char a, std::uint8_t b) { return static_cast<std::uint8_t>(a) == b; }),
            "another text than the line has");
  }
  const bool has_entries = columns.codec != text::EntryCodec::None;
  check_entry(row, columns,
              has_entries ? piece(parsed.entries, parsed.entry_ends, i) : std::span<const std::uint8_t>());
}

void digest(std::string_view block, const text::Lines& lines) {
  const text::Pieces documents{block, lines.begins, lines.ends};
  std::vector<char> out(text::digested_bytes(documents, {}));
  text::write_digested(documents, {}, out.data());
}

}  // namespace

bool json_lines(Input input) {
  const std::size_t choice = take_choice(input, 32);
  const text::LineColumns columns = columns_of(choice);
  const std::string_view block = view_of(input);
  digest(block, text::split_lines(block, false, false));
  const text::Lines lines = text::split_lines(block, true, choice / 16 == 1);
  const text::ParsedLines parsed = text::JsonLines(columns).parse({block, lines.begins, lines.ends});
  require(parsed.ends.size() == lines.ends.size(), "another number of documents than lines");
  for (std::size_t i = 0; i < lines.ends.size(); ++i) {
    if (std::ranges::binary_search(parsed.refused, static_cast<std::uint32_t>(i))) continue;
    check_line(block.substr(lines.begins[i], lines.ends[i] - lines.begins[i]), columns, parsed, i);
  }
  return parsed.refused.size() < lines.ends.size();
}

}  // namespace penstock::fuzz
