#include "layout/foreign/foreign_index.h"

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/io/byte_store.h"

#include <nlohmann/json.hpp>

#include <span>
#include <string_view>

namespace penstock::layout {
namespace {

using nlohmann::json;

constexpr std::uint64_t kMaxIndexBytes = 64U << 20;

std::string index_path(const Location& folder) {
  return folder.path + (folder.path.ends_with('/') ? "" : "/") + kForeignIndexName;
}

std::string read_text(const Location& location) {
  ByteStore& store = *location.store;
  std::string text;
  if (store.read_whole(location.path, kMaxIndexBytes, text)) return text;
  const std::uint64_t bytes = store.size(location.path, Links::Follow);
  if (bytes > kMaxIndexBytes) {
    raise(ErrorKind::Corruption, "{}: {} bytes, at most {} can be", location.path, with_commas(bytes),
          with_commas(kMaxIndexBytes));
  }
  text.resize(bytes);
  store.read_small(location.path, 0, std::as_writable_bytes(std::span(text)));
  return text;
}

// The name of the file of an entry of a list; empty where it has none.
std::string name_of(const json& entry, bool is_mds) {
  if (!entry.is_object()) return {};
  const json* at = &entry;
  if (is_mds) {
    const auto raw = entry.find("raw_data");
    if (raw == entry.end() || !raw->is_object()) return {};
    at = &*raw;
  }
  const auto found = at->find(is_mds ? "basename" : "filename");
  return found != at->end() && found->is_string() ? found->get<std::string>() : std::string();
}

}  // namespace

std::string foreign_folder_path(const std::string& path) {
  const std::string suffix = std::string("/") + kForeignIndexName;
  if (path == kForeignIndexName) return ".";
  return path.ends_with(suffix) ? path.substr(0, path.size() - suffix.size()) : path;
}

Location foreign_folder(const Location& location) {
  return {location.store, foreign_folder_path(location.path)};
}

json read_foreign_index(const Location& folder) {
  const Location index{folder.store, index_path(folder)};
  json parsed = parse_json_strict(read_text(index), index.path, kMaxIndexBytes);
  if (!parsed.is_object()) raise(ErrorKind::Corruption, "{}: no JSON object", index.path);
  return parsed;
}

std::string foreign_file_path(const Location& folder, const std::string& name) {
  const auto is_inside = [&] {
    std::string_view left = name;
    while (true) {
      const std::size_t end = left.find('/');
      const std::string_view part = left.substr(0, end);
      if (part.empty() || part == "." || part == "..") return false;
      if (end == std::string_view::npos) break;
      left.remove_prefix(end + 1);
    }
    return name.find('\0') == std::string::npos && name.find('\\') == std::string::npos;
  };
  if (!is_inside()) {
    raise(ErrorKind::Corruption, "{}: names the file {}, which is none of its folder", index_path(folder),
          excerpt(name));
  }
  return folder.path + (folder.path.ends_with('/') ? "" : "/") + name;
}

std::string kind_of_foreign_folder(const Location& location) {
  try {
    const json index = read_foreign_index(foreign_folder(location));
    return index.contains("chunks") ? "litdata" : index.contains("shards") ? "mds" : "";
  } catch (const Error&) {
    return {};
  }
}

std::vector<Location> files_of_foreign_folder(const Location& location) {
  const Location folder = foreign_folder(location);
  std::vector<Location> files;
  const json index = read_foreign_index(folder);
  const bool is_mds = index.contains("shards");
  const auto list = index.find(is_mds ? "shards" : "chunks");
  if (list == index.end() || !list->is_array()) return {};
  for (const json& entry : *list) {
    const std::string name = name_of(entry, is_mds);
    if (!name.empty()) files.push_back({folder.store, foreign_file_path(folder, name)});
  }
  return files;
}

std::string listed(const std::vector<std::string>& names, std::size_t most) {
  std::string out;
  for (std::size_t i = 0; i < names.size() && i < most; ++i) out.append(i == 0 ? "" : ", ").append(excerpt(names[i]));
  if (names.size() > most) out.append(fmt::format(" and {} more", names.size() - most));
  return names.empty() ? "none" : out;
}

}  // namespace penstock::layout
