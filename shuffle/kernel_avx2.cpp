// The kernel of kernel.inl, form: avx2. CMakeLists.txt gives the instruction set.
#define PENSTOCK_FORM avx2
#include "shuffle/kernel.inl"
