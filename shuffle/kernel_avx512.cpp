// The kernel of kernel.inl, form: avx512. CMakeLists.txt gives the instruction set.
#define PENSTOCK_FORM avx512
#include "shuffle/kernel.inl"
