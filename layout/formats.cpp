#include "layout/formats.h"

#include "core/base/error.h"
#include "layout/megatron.h"

#include <algorithm>
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

bool is_folder(const std::string& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

bool is_there(const std::string& path) {
  std::error_code ignored;
  return fs::exists(fs::symlink_status(path, ignored));
}

// A .bin or .idx beside its .idx, or the prefix of both.
bool is_megatron(const std::string& path) {
  const fs::path given(path);
  const fs::path extension = given.extension();
  if ((extension == ".bin" || extension == ".idx") && is_file_or_folder(fs::path(given).replace_extension(".idx")))
    return true;
  return is_file_or_folder(path + ".idx") && is_file_or_folder(path + ".bin");
}

DatasetPtr open_folders(const std::vector<std::string>& paths, const std::string& /*descr_json*/) {
  std::vector<DatasetPtr> datasets;
  std::transform(paths.begin(), paths.end(), std::back_inserter(datasets), open_dataset);
  return concatenate(datasets);
}

// A pattern like "corpus*" matches both files of a pair: it is opened once.
DatasetPtr open_pairs(const std::vector<std::string>& paths, const std::string& /*descr_json*/) {
  std::vector<std::string> prefixes;
  for (const std::string& path : paths) {
    std::string prefix = megatron_prefix(path);
    if (std::find(prefixes.begin(), prefixes.end(), prefix) == prefixes.end()) prefixes.push_back(std::move(prefix));
  }
  return open_megatron(prefixes);
}

constexpr FileFormat kFormats[] = {
    {"penstock", is_folder, open_folders},
    {"megatron", is_megatron, open_pairs},
    {"raw", is_there, open_raw},
};

}  // namespace

std::span<const FileFormat> file_formats() noexcept {
  return kFormats;
}

const FileFormat* recognise_format(const std::string& path) {
  const auto* found = std::find_if(std::begin(kFormats), std::end(kFormats),
                                   [&](const FileFormat& format) { return format.recognises(path); });
  return found == std::end(kFormats) ? nullptr : found;
}

DatasetPtr open_as(const std::string& name, const std::vector<std::string>& paths, const std::string& descr_json) {
  for (const FileFormat& format : kFormats) {
    if (name == format.name) return format.open(paths, descr_json);
  }
  raise(ErrorKind::InvalidArgument, "format \"{}\": there is none of this name", name);
}

}  // namespace penstock::layout
