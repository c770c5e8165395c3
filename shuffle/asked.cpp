#include "shuffle/asked.h"

#include "shuffle/epoch_run.h"

#include <nlohmann/json.hpp>

#include <utility>

namespace penstock::shuffle {
namespace {

Asked::Spec checked_spec(Asked::Spec spec) {
  check_order_size("custom", spec.length);
  return spec;
}

}  // namespace

Asked::Asked(Spec spec, Ask ask)
    : spec_(checked_spec(std::move(spec))),
      ask_(std::move(ask)),
      fetches_("custom", spec_.length, spec_.fetch, spec_.lanes) {}

void Asked::pick(std::uint64_t first, std::uint64_t stride, std::span<Pick> out) const {
  for (std::size_t done = 0; done < out.size();) {
    const EpochRun run = epoch_run(spec_.length, first + done * stride, stride, out.size() - done);
    IndexBlock block;
    std::uint64_t number = 0;
    for (std::size_t i = 0; i < run.count; ++i) {
      const std::uint64_t offset = run.offset + i * stride;
      if (!block || offset / kBlock != number) {
        number = offset / kBlock;
        block = ask_(run.epoch, number);
      }
      out[done + i] = {(*block)[offset % kBlock], fetches_.number(run.epoch, offset), 0, run.epoch};
    }
    done += run.count;
  }
}

void Asked::note_end(std::uint64_t position) const {
  if (spec_.note_end) spec_.note_end(position / spec_.length + (position % spec_.length == 0 ? 0 : 1));
}

// Which positions are read together decides none of them.
std::string Asked::identity(std::uint64_t) const {
  const nlohmann::json root = {
      {"function", spec_.name}, {"length", spec_.length}, {"name", "custom"}, {"version", spec_.version}};
  return root.dump();
}

}  // namespace penstock::shuffle
