// Any bytes as dataset.json and shard.json: parsed or refused with penstock::Error, never anything else.
//
// The seal is made right first, or the fuzzer would never get past it. What parses must print and parse again.
#include "core/base/error.h"
#include "layout/dataset/manifest.h"
#include "layout/dataset/sealed_json.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

using penstock::Error;
namespace layout = penstock::layout;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string body(reinterpret_cast<const char*>(data), size);
  const std::string sealed = layout::seal_json(body);
  for (const std::string& text : {body, sealed}) {
    try {
      const layout::Manifest manifest = layout::parse_manifest(text, "dataset.json");
      const std::string printed = layout::write_manifest(manifest);
      if (layout::write_manifest(layout::parse_manifest(printed, "printed")) != printed) std::abort();
    } catch (const Error&) {
    }
    try {
      layout::parse_shard_manifest(text, "shard.json");
    } catch (const Error&) {
    }
  }
  return 0;
}
