#include "layout/formats.h"

#include "core/base/error.h"
#include "layout/dataset/format.h"
#include "layout/foreign/foreign_index.h"
#include "layout/foreign/megatron.h"
#include "layout/foreign/token_files.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <filesystem>
#include <iterator>
#include <system_error>

namespace penstock::layout {
namespace {

namespace fs = std::filesystem;

// A name that cannot be followed, or is too long, is taken for not there: opening it says why. Any other error says
// nothing of what lies there, and a dataset must not be taken for another format by it. Throws IoError.
fs::file_status checked(fs::file_status status, const std::error_code& error, const fs::path& path) {
  const int number = error.value();
  const bool says_nothing = !fs::status_known(status) && number != EACCES && number != ENAMETOOLONG && number != ELOOP;
  if (says_nothing) raise_system(number, "cannot be looked at", path.string());
  return status;
}

fs::file_status status_of(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  return checked(status, error, path);
}

bool is_file_or_folder(const fs::path& path) {
  return fs::exists(status_of(path));
}

bool is_folder(const Location& location) {
  return fs::is_directory(status_of(location.path));
}

bool is_there(const Location& location) {
  std::error_code error;
  const fs::file_status status = fs::symlink_status(location.path, error);
  return fs::exists(checked(status, error, location.path));
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

// A pattern like "corpus*" matches the files beside each other: what they belong to is opened once.
std::vector<Location> each_once(const std::vector<Location>& locations, std::string (*owner)(const std::string& path)) {
  std::vector<Location> once;
  for (const Location& location : locations) {
    Location own{location.store, owner(location.path)};
    const auto same = [&](const Location& other) { return other.store == own.store && other.path == own.path; };
    if (std::none_of(once.begin(), once.end(), same)) once.push_back(std::move(own));
  }
  return once;
}

DatasetPtr open_pairs(const std::vector<Location>& locations, const OpenHints& /*hints*/) {
  return open_megatron(each_once(locations, megatron_prefix));
}

std::vector<Location> files_of_pair(const Location& location) {
  const std::string prefix = megatron_prefix(location.path);
  return {{location.store, prefix + ".idx"}, {location.store, prefix + ".bin"}};
}

DatasetPtr open_files(const std::vector<Location>& locations, const OpenHints& hints) {
  return open_raw(locations, hints.descr_json);
}

std::vector<Location> files_of_one(const Location& location) {
  return {location};
}

std::vector<Location> no_files(const Location& /*location*/) {
  return {};
}

bool is_datatrove(const Location& location) {
  const std::string stream = datatrove_path(location.path);
  return stream.ends_with(".ds") && is_file_or_folder(stream);
}

DatasetPtr open_ds(const std::vector<Location>& locations, const OpenHints& hints) {
  return open_datatrove(each_once(locations, datatrove_path), hints.descr_json);
}

bool is_olmo(const Location& location) {
  const std::string stream = olmo_path(location.path);
  return stream.ends_with(".npy") && is_file_or_folder(stream) && is_file_or_folder(olmo_documents_path(stream));
}

DatasetPtr open_npy_and_csv(const std::vector<Location>& locations, const OpenHints& hints) {
  return open_olmo(each_once(locations, olmo_path), hints.descr_json);
}

std::vector<Location> files_of_olmo(const Location& location) {
  const std::string stream = olmo_path(location.path);
  return {{location.store, stream}, {location.store, olmo_documents_path(stream)}};
}

// A folder with an index.json and none of ours, or that file.
bool has_foreign_index(const Location& location, const char* kind) {
  const fs::path folder = foreign_folder(location).path;
  return is_file_or_folder(folder / kForeignIndexName) && !is_file_or_folder(folder / kManifestName) &&
         kind_of_foreign_folder(location) == kind;
}

bool is_litdata(const Location& location) {
  return has_foreign_index(location, "litdata");
}

bool is_mds(const Location& location) {
  return has_foreign_index(location, "mds");
}

DatasetPtr open_chunks(const std::vector<Location>& locations, const OpenHints& /*hints*/) {
  return open_litdata(each_once(locations, foreign_folder_path));
}

DatasetPtr open_shards(const std::vector<Location>& locations, const OpenHints& hints) {
  return open_mds(each_once(locations, foreign_folder_path), hints.column, hints.descr_json);
}

// An index.json of a server, which may be of either.
bool is_never(const Location& /*location*/) {
  return false;
}

DatasetPtr open_indexed(const std::vector<Location>& locations, const OpenHints& hints) {
  const bool is_mds = !locations.empty() && kind_of_foreign_folder(locations[0]) == "mds";
  return is_mds ? open_shards(locations, hints) : open_chunks(locations, hints);
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
    {"mds", is_mds, files_of_foreign_folder, open_shards},
    {"litdata", is_litdata, files_of_foreign_folder, open_chunks},
    {kForeignIndexName, is_never, files_of_foreign_folder, open_indexed},
    {"penstock", is_folder, no_files, open_folders},
    {"megatron", is_megatron, files_of_pair, open_pairs},
    {"datatrove", is_datatrove, files_of_one, open_ds},
    {"olmo", is_olmo, files_of_olmo, open_npy_and_csv},
    {"h5ad", is_h5ad, no_files, open_elsewhere},
    {"raw", is_there, files_of_one, open_files},
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

const FileFormat* find_format(const std::string& name) noexcept {
  const auto* found = std::find_if(std::begin(kFormats), std::end(kFormats),
                                   [&](const FileFormat& format) { return name == format.name; });
  return found == std::end(kFormats) ? nullptr : found;
}

DatasetPtr open_as(const std::string& name, const std::vector<Location>& locations, const OpenHints& hints) {
  if (const FileFormat* const format = find_format(name)) return format->open(locations, hints);
  raise(ErrorKind::InvalidArgument, "format \"{}\": there is none of this name", name);
}

}  // namespace penstock::layout
