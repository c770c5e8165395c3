// Views with typed values: what each document's columns hold is read with the row.
//
// A decorator of a view's source. Where rows are documents, their values are read beside what tells where a document
// lies; where rows are windows, once their spans are known. Blocks of columns.bin that were read are kept where they
// fit, narrow columns before wide ones: most rows then cost no read. Any thread.
#pragma once

#include "layout/dataset.h"

#include <memory>
#include <string>
#include <vector>

namespace penstock::layout {

/// `source`, a view of `dataset`, whose rows have the values of these columns (Row::values), one for each document of
/// the row. `source` itself for no names. Throws InvalidArgument: no such column, one that is named twice.
std::shared_ptr<const Source> with_columns(const DatasetPtr& dataset, std::shared_ptr<const Source> source,
                                           const std::vector<std::string>& names);

/// The view whose observation i is entry i: of its document nothing but the values of these columns. Throws as
/// with_columns().
std::shared_ptr<const Source> make_values(const DatasetPtr& dataset, const std::vector<std::string>& names);

}  // namespace penstock::layout
