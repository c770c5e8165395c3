// The local cache of files that lie elsewhere.
#include "bindings/gil.h"
#include "bindings/register.h"
#include "core/base/digest.h"
#include "core/io/cache/cached_store.h"
#include "core/io/http/http_store.h"
#include "layout/dataset/dataset_files.h"
#include "layout/dataset/format.h"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace py = pybind11;

namespace penstock::bindings {
namespace {

using RunsUnlocked = py::call_guard<Unlocked>;

// What tells files of others from other files at the same address.
struct Told {
  std::string place;                         // the server of a bucket
  std::map<std::string, std::string> etags;  // of paths that were read through Python
};

// The manifest tells every byte of a dataset's files; of others' files their sizes, ETags and place do, and the
// fingerprint, which is of some of their bytes.
std::string version_at(const CachedStore& store, const layout::Dataset& dataset,
                       const std::vector<CacheableFile>& files, const std::string& address, const Told& told) {
  const std::string manifest = store.digest_of_whole(address + "/" + layout::kManifestName);
  if (!manifest.empty()) return manifest;
  const auto* const http = dynamic_cast<const HttpStore*>(store.inner().get());
  Digest digest;
  digest.update(dataset.fingerprint);
  digest.update_u64(told.place.size());
  digest.update(told.place);
  for (const CacheableFile& file : files) {
    if (!file.path.starts_with(address)) continue;
    digest.update_u64(file.path.size());
    digest.update(file.path);
    digest.update_u64(file.bytes);
    if (http != nullptr) digest.update(http->etag(file.path));
    const auto etag = told.etags.find(file.path);
    if (etag != told.etags.end()) digest.update(etag->second);
  }
  return digest.hex();
}

void keep(CachedStore& store, const layout::Dataset& dataset, const std::vector<std::string>& addresses,
          std::optional<std::uint64_t> most_bytes, std::string place, std::map<std::string, std::string> etags) {
  const Told told{std::move(place), std::move(etags)};
  std::vector<CacheableFile> files;
  for (auto& [path, bytes] : layout::files_in(dataset, store)) files.push_back({std::move(path), bytes});
  std::vector<CachedStore::Content> contents;
  for (const std::string& address : addresses) {
    contents.push_back({address, version_at(store, dataset, files, address, told)});
  }
  store.keep(contents, files, most_bytes);
}

std::map<std::string, std::uint64_t> counts_of(CachedStore& store) {
  const CacheCounts& counts = store.counts();
  return {{"hits", counts.hits},     {"misses", counts.misses},
          {"wrong", counts.wrong},   {"filled", counts.filled},
          {"failed", counts.failed}, {"stopped_by", static_cast<std::uint64_t>(counts.stopped_by.load())}};
}

}  // namespace

void register_cache(py::module_& module, const std::shared_ptr<LocalStore>& local) {
  py::class_<CachedStore, ByteStore, std::shared_ptr<CachedStore>>(
      module, "CachedStore", "Another store's files, of which a part stays on this machine's disk.")
      .def(py::init([local](std::shared_ptr<ByteStore> store, std::string folder) {
             return std::make_shared<CachedStore>(std::move(store), local, std::move(folder));
           }),
           RunsUnlocked(), py::arg("store"), py::arg("folder"))
      .def("keep", &keep, RunsUnlocked(), py::arg("dataset"), py::arg("addresses"), py::arg("most_bytes"),
           py::arg("place"), py::arg("etags"),
           "From now on keeps what is read of the dataset, which was opened from these addresses.\n\n"
           "place, etags: tell files of other formats apart: the server of their bucket; of paths read through Python")
      .def_property_readonly("share", [](const CachedStore& store) { return store.share().share(); })
      .def_property_readonly("counts", &counts_of,
                             "hits, misses, wrong, filled: pages; failed: writes; stopped_by: errno");
}

}  // namespace penstock::bindings
