// CMakeLists.txt gives the instruction set.
#define PENSTOCK_CAST_FORM find_cast_run_avx2
#include "core/rows/cast_runs.inl"
