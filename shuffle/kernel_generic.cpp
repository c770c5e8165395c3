// The kernel of kernel.inl, form: generic. CMakeLists.txt gives the instruction set.
#define PENSTOCK_FORM generic
#include "shuffle/kernel.inl"
