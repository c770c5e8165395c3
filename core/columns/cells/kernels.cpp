#define PENSTOCK_CELL_KERNELS kernels_generic
#include "core/columns/cells/kernels.inl"

namespace penstock::cells {

const Kernels& kernels() {
#ifdef PENSTOCK_X86_CELLS
  static const bool has_avx2 = __builtin_cpu_supports("avx2") != 0;
  if (has_avx2) return kernels_avx2();
#endif
  return kernels_generic();
}

}  // namespace penstock::cells
