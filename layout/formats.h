// Formats: the one table of what can be opened: each format's name, how its files are recognised, how they are opened.
//
// Constants and free functions; any thread.
#pragma once

#include "layout/dataset.h"

#include <span>
#include <string>
#include <vector>

namespace penstock::layout {

/// What a user may say of the files.
struct OpenHints {
  std::string descr_json;  // of bare files, as for open_raw(); formats that say their type ignore it
  std::string column;      // of MDS: which has the tokens; "": that called tokens or input_ids
  Checks checks = Checks::Index;
};

struct FileFormat {
  const char* name;  // what users give as format=
  /// Whether what is there is of this format; looks at names, not into files. Local paths alone so far.
  bool (*recognises)(const Location& location);
  /// The files at whose beginnings and ends opening looks, as far as names tell; empty: it does not look at many.
  /// Throws as open() where they are listed in another one.
  std::vector<Location> (*files)(const Location& location);
  /// Several are opened end to end. Throws as open_dataset(), open_megatron(), open_raw() and those of token_files.h.
  DatasetPtr (*open)(const std::vector<Location>& locations, const OpenHints& hints);
};

/// In the order in which a path is tried.
std::span<const FileFormat> file_formats() noexcept;

/// The first format that recognises `location`, or null: there is nothing.
const FileFormat* recognise_format(const Location& location);

/// The format called `name`; null: there is none.
const FileFormat* find_format(const std::string& name) noexcept;

/// Opens `locations` as the format called `name`. Throws InvalidArgument for a name that is not in the table.
DatasetPtr open_as(const std::string& name, const std::vector<Location>& locations, const OpenHints& hints);

}  // namespace penstock::layout
