// Tables that are filled at once while a dataset is opened are asked for in huge pages. Any thread.
#pragma once

#include <cstddef>

namespace penstock::layout {

/// Asks for huge pages in memory that was reserved and not yet touched: a fault for each 4 KiB of text and tables was a
/// quarter of opening 40,000 shards. Advice; less than a huge page is left alone.
void advise_huge_pages(void* begin, std::size_t bytes) noexcept;

}  // namespace penstock::layout
