#include "layout/formats.h"

#include "core/base/error.h"
#include "layout/megatron.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <iterator>

namespace penstock::layout {
namespace {

namespace fs = std::filesystem;

// What cannot be looked at is taken for not there: opening it says why.
bool is_file_or_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

bool is_folder(const Location& location) {
  std::error_code ignored;
  return fs::is_directory(location.path, ignored);
}

bool is_there(const Location& location) {
  std::error_code ignored;
  return fs::exists(fs::symlink_status(location.path, ignored));
}

// A .bin or .idx beside its .idx, or the prefix of both.
bool is_megatron(const Location& location) {
  const fs::path given(location.path);
  const fs::path extension = given.extension();
  if ((extension == ".bin" || extension == ".idx") && is_file_or_folder(fs::path(given).replace_extension(".idx")))
    return true;
  return is_file_or_folder(location.path + ".idx") && is_file_or_folder(location.path + ".bin");
}

DatasetPtr open_folders(const std::vector<Location>& locations, const OpenHints& hints) {
  std::vector<DatasetPtr> datasets;
  datasets.reserve(locations.size());
  for (const Location& location : locations) datasets.push_back(open_dataset(location, hints.checks));
  return concatenate(datasets);
}

// A pattern like "corpus*" matches both files of a pair: it is opened once.
DatasetPtr open_pairs(const std::vector<Location>& locations, const OpenHints& /*hints*/) {
  std::vector<Location> prefixes;
  for (const Location& location : locations) {
    Location prefix{location.store, megatron_prefix(location.path)};
    const auto same = [&](const Location& other) { return other.store == prefix.store && other.path == prefix.path; };
    if (std::none_of(prefixes.begin(), prefixes.end(), same)) prefixes.push_back(std::move(prefix));
  }
  return open_megatron(prefixes);
}

DatasetPtr open_files(const std::vector<Location>& locations, const OpenHints& hints) {
  return open_raw(locations, hints.descr_json);
}

bool is_h5ad(const Location& location) {
  std::string extension = fs::path(location.path).extension();
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return extension == ".h5ad" && is_there(location);
}

DatasetPtr open_elsewhere(const std::vector<Location>& locations, const OpenHints& /*hints*/) {
  raise(ErrorKind::InvalidArgument, "{}: the Python package finds where an .h5ad file's arrays lie (field_arrays.h)",
        locations.empty() ? "nothing" : locations.front().path);
}

constexpr FileFormat kFormats[] = {
    {"penstock", is_folder, open_folders},
    {"megatron", is_megatron, open_pairs},
    {"h5ad", is_h5ad, open_elsewhere},
    {"raw", is_there, open_files},
};

}  // namespace

std::span<const FileFormat> file_formats() noexcept {
  return kFormats;
}

const FileFormat* recognise_format(const Location& location) {
  const auto* found = std::find_if(std::begin(kFormats), std::end(kFormats),
                                   [&](const FileFormat& format) { return format.recognises(location); });
  return found == std::end(kFormats) ? nullptr : found;
}

DatasetPtr open_as(const std::string& name, const std::vector<Location>& locations, const OpenHints& hints) {
  for (const FileFormat& format : kFormats) {
    if (name == format.name) return format.open(locations, hints);
  }
  raise(ErrorKind::InvalidArgument, "format \"{}\": there is none of this name", name);
}

}  // namespace penstock::layout
