#include "text/wrap_ids.h"

#include "core/base/checked.h"
#include "core/base/error.h"

#include <algorithm>
#include <limits>

namespace penstock::text {
namespace {

constexpr std::size_t kRun = 4096;  // ids that are written and looked at together, while they are in the core's cache

// Writes ids and notes the first wrong one.
template <typename Out>
class IdWriter {
 public:
  IdWriter(Out* out, std::uint64_t last) : begin_(out), out_(out), last_(last) {}

  template <typename From>
  void put(const From* ids, std::size_t count) {
    for (std::size_t i = 0; i < count; i += kRun) put_run(ids + i, std::min(kRun, count - i));
  }
  [[nodiscard]] std::int64_t wrong() const noexcept { return wrong_; }

 private:
  template <typename From>
  [[nodiscard]] bool is_wrong(From id) const noexcept {
    // A negative one becomes a large one.
    if constexpr (sizeof(From) == sizeof(std::uint32_t)) return id > static_cast<std::uint32_t>(last_);
    return static_cast<std::uint64_t>(id) > last_;
  }
  template <typename From>
  void put_run(const From* ids, std::size_t count) {
    std::uint32_t any = 0;
    Out* const out = out_;
    for (std::size_t i = 0; i < count; ++i) {
      out[i] = static_cast<Out>(ids[i]);
      any |= static_cast<std::uint32_t>(is_wrong(ids[i]));
    }
    if (any != 0 && wrong_ < 0) {
      const From* const found = std::find_if(ids, ids + count, [this](From id) { return is_wrong(id); });
      wrong_ = (out - begin_) + (found - ids);
    }
    out_ += count;
  }

  Out* begin_;
  Out* out_;
  std::uint64_t last_;
  std::int64_t wrong_ = -1;
};

template <typename In, typename Out>
std::int64_t wrap(std::span<const In> ids, const IdDocuments& documents, const IdWrapping& wrapping, std::span<Out> out,
                  std::span<std::uint64_t> lengths) {
  if (wrapping.last > std::numeric_limits<Out>::max()) {
    raise(ErrorKind::InvalidArgument, "last id {}: ids of {} bytes are at most {}", wrapping.last, sizeof(Out),
          std::numeric_limits<Out>::max());
  }
  const std::uint64_t added = wrapping.prepend.size() + wrapping.append.size();
  std::uint64_t begin = documents.first;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    lengths[i] = documents.ends[i] - begin + added;
    begin = documents.ends[i];
  }
  IdWriter<Out> writer(out.data(), wrapping.last);
  if (added == 0) {
    writer.put(ids.data() + documents.first, out.size());
    return writer.wrong();
  }
  begin = documents.first;
  for (const std::uint64_t end : documents.ends) {
    writer.put(wrapping.prepend.data(), wrapping.prepend.size());
    writer.put(ids.data() + begin, static_cast<std::size_t>(end - begin));
    writer.put(wrapping.append.data(), wrapping.append.size());
    begin = end;
  }
  return writer.wrong();
}

}  // namespace

std::uint64_t wrapped_size(const IdDocuments& documents, const IdWrapping& wrapping) {
  const std::size_t size = std::visit([](const auto& ids) { return ids.size(); }, documents.ids);
  std::uint64_t begin = documents.first;
  for (std::size_t i = 0; i < documents.ends.size(); ++i) {
    if (documents.ends[i] < begin || documents.ends[i] > size) {
      raise(ErrorKind::InvalidArgument, "document {}: ids {} to {} of {}", i, begin, documents.ends[i], size);
    }
    begin = documents.ends[i];
  }
  const std::uint64_t added = wrapping.prepend.size() + wrapping.append.size();
  const std::uint64_t more = checked_mul(added, documents.ends.size(), "added ids", ErrorKind::InvalidArgument);
  return checked_add(begin - documents.first, more, "ids", ErrorKind::InvalidArgument);
}

std::int64_t wrap_ids(const IdDocuments& documents, const IdWrapping& wrapping, WrapOutput out,
                      std::span<std::uint64_t> lengths) {
  return std::visit([&](const auto& ids, const auto& to) { return wrap(ids, documents, wrapping, to, lengths); },
                    documents.ids, out);
}

}  // namespace penstock::text
