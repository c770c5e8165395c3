// CMakeLists.txt gives the instruction set.
#define PENSTOCK_CELL_KERNELS kernels_avx2
#include "core/columns/cells/kernels.inl"
