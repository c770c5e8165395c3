#include "layout/reading/huge_pages.h"

#include <sys/mman.h>

#include <cstdint>

namespace penstock::layout {

void advise_huge_pages(void* begin, std::size_t bytes) noexcept {
  constexpr std::uintptr_t kHugePage = std::uintptr_t{2} << 20;
  const auto address = reinterpret_cast<std::uintptr_t>(begin);
  const std::uintptr_t skipped = (kHugePage - address % kHugePage) % kHugePage;
  if (bytes < skipped + kHugePage) return;
  const std::size_t whole = (bytes - skipped) / kHugePage * kHugePage;
  (void)::madvise(static_cast<std::byte*>(begin) + skipped, whole, MADV_HUGEPAGE);
}

}  // namespace penstock::layout
