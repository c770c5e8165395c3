#include "text/skip_seen.h"

namespace penstock::text {
namespace {

bool is_unseen_lead(const SeenTables& tables, const std::uint8_t* at) noexcept {
  const std::uint32_t code = *at < 0xe0 ? code_at<1>(at) : *at < 0xf0 ? code_at<2>(at) : code_at<3>(at);
  return !has_bit(tables.characters.data(), code);
}

bool has_unseen(const SeenTables& tables, const std::uint8_t* at) noexcept {
  for (const std::uint8_t* const end = at + kSkipBlock; at != end; ++at) {
    const std::uint8_t kind = tables.classes[*at];
    if (kind == 0) continue;
    if ((kind & kUnseenAscii) != 0 || ((kind & kLead) != 0 && is_unseen_lead(tables, at))) return true;
    if ((kind & kTokenFirst) != 0 && has_bit(tables.pairs.data(), at[0] + 256U * at[1])) return true;
  }
  return false;
}

}  // namespace

const std::uint8_t* skip_seen_generic(const SeenTables& tables, const std::uint8_t* at, const std::uint8_t* end) {
  for (; static_cast<std::size_t>(end - at) >= kSkipBlock + kSkipMargin; at += kSkipBlock) {
    std::uint8_t any = 0;
    for (std::size_t i = 0; i < kSkipBlock; ++i) any |= tables.classes[at[i]];
    if (any != 0 && has_unseen(tables, at)) break;
  }
  return at;
}

SkipSeen best_skip_seen() noexcept {
#ifdef PENSTOCK_X86_KERNELS
  if (__builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("bmi") != 0) return skip_seen_avx2;
#endif
  return skip_seen_generic;
}

}  // namespace penstock::text
