// Token files of other formats that are opened in place, beside bare ones (open_raw, dataset.h): one function each.
//
// Any thread. All of them throw NotFound, IoError; Corruption (truncated, wrong, files that disagree); InvalidArgument
// (what cannot be read in place, a type that is not given or another one, files that differ).
#pragma once

#include "layout/dataset.h"

#include <string>
#include <string_view>
#include <vector>

namespace penstock::layout {

/// datatrove's .ds: bare tokens, documents of the .ds.index beside it, and with a .ds.loss the field `loss`, bool.
/// Paths may be those of the files beside it.
DatasetPtr open_datatrove(const std::vector<Location>& files, const std::string& descr_json);
std::string datatrove_path(const std::string& path);

/// OLMo's .npy (bare, or NumPy's), documents of the .csv.gz beside it. Paths may be that one's.
DatasetPtr open_olmo(const std::vector<Location>& files, const std::string& descr_json);
std::string olmo_path(const std::string& path);
/// The .csv.gz of a .npy.
std::string olmo_documents_path(const std::string& path);

/// Folders of litdata's chunks that TokensLoader reads, or their index.json. An item is a document.
DatasetPtr open_litdata(const std::vector<Location>& folders);

/// Folders of uncompressed MDS shards, or their index.json. A sample's `column` is a document; "": that called `tokens`
/// or `input_ids`.
DatasetPtr open_mds(const std::vector<Location>& folders, const std::string& column, const std::string& descr_json);

/// What opening them has in common: `dataset` has its shards, kind, schema and spans.
DatasetPtr finish_foreign(std::shared_ptr<Dataset> dataset, const Digest& digest);

/// A schema of the one field `token` of NumPy's type `type`.
Schema token_schema(std::string_view type);

/// The type of one field that `descr_json` gives, for files that do not say it. "" where it is "". Throws
/// InvalidArgument for several fields, or one that is no integer.
std::string given_token_type(const std::string& descr_json, const std::string& path);

}  // namespace penstock::layout
