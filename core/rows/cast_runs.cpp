#define PENSTOCK_CAST_FORM find_cast_run_generic
#include "core/rows/cast_runs.inl"

namespace penstock {

CastRun find_cast_run(ScalarType from, ScalarType to) {
#ifdef PENSTOCK_X86_CASTS
  static const bool has_avx2 = __builtin_cpu_supports("avx2") != 0;
  if (has_avx2) return find_cast_run_avx2(from, to);
#endif
  return find_cast_run_generic(from, to);
}

}  // namespace penstock
