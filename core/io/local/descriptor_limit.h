// The limit of descriptors (RLIMIT_NOFILE), and what a store takes of it. Any thread.
#pragma once

#include <cstddef>

namespace penstock {

/// How many files a store keeps open: a quarter of the soft limit, since there may be a second store and the rest is
/// the training job's; at least 1, at most 65,536.
std::size_t open_files_share();

/// Raises the soft limit to the hard one, for the whole process and the children that it starts from then on. Does
/// nothing where that is refused.
void raise_descriptor_limit() noexcept;

}  // namespace penstock
