#include "layout/windows/span_finder.h"

namespace penstock::layout {

std::unique_ptr<const SpanFinder> make_span_finder(const DatasetPtr& dataset) {
  switch (dataset->spans) {
    case SpanKind::Compact: return make_compact_finder(dataset);
    case SpanKind::Ids: return make_ids_finder(dataset);
    case SpanKind::Megatron: return make_megatron_finder(dataset);
    case SpanKind::Bounds: return make_bounds_finder(dataset);
    case SpanKind::Arrays:
    case SpanKind::None:
    case SpanKind::Opaque: break;
  }
  return nullptr;
}

}  // namespace penstock::layout
