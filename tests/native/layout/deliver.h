// What a loader delivers of a source of this folder, in a form that can be compared.
#pragma once

#include "core/engine/loader.h"
#include "shuffle/uniform.h"

#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace penstock::testing {

using SourcePtr = std::shared_ptr<const Source>;

/// All that a batch holds: where it lies in the run, tokens, spans.
inline std::string text_of(const Batch& batch) {
  std::string text = std::to_string(batch.plan.position) + ";";
  const PlacedArray& tokens = batch.arrays[0];
  text.append(reinterpret_cast<const char*>(batch.slab.data() + tokens.at), tokens.shape.bytes);
  for (std::uint64_t row = 0; row < batch.plan.valid; ++row) {
    for (const Span& span : batch.rows[row].spans) {
      text += std::to_string(span.start) + "-" + std::to_string(span.stop) + ":";
      text.append(reinterpret_cast<const char*>(span.raw), span.raw_bytes);
    }
  }
  return text;
}

/// Each batch as one text.
inline std::vector<std::string> deliver(const SourcePtr& source, unsigned threads, unsigned prefetch) {
  auto formats = std::make_shared<BatchFormats>();
  formats->emplace_back(source, std::vector<ColumnSpec>{FieldSpec{"token", "token", {'i', 8}}});
  LoaderOptions options;
  CursorOptions cursor;
  cursor.epochs = 2;
  cursor.schedule = {{0, 5}};
  options.job = std::make_shared<Job>(std::make_shared<shuffle::Uniform>(source->info().size, 1),
                                      std::span(&source->info().identity, 1), std::move(cursor));
  options.formats = formats;
  options.max_bytes = 1 << 20;  // room to keep metadata
  options.threads = threads;
  options.prefetch = prefetch;
  Loader loader(options);
  std::vector<std::string> batches;
  while (true) {
    const std::shared_ptr<Batch> batch = loader.poll();
    if (!batch && loader.ended()) return batches;
    if (!batch) {
      loader.wait(std::chrono::milliseconds(50));
      continue;
    }
    batches.push_back(text_of(*batch));
  }
}

}  // namespace penstock::testing
