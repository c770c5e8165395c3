// Dispatch: which form of the batch kernel this machine runs, found out once. Any thread.
#pragma once

#include "shuffle/kernel.h"

namespace penstock::shuffle {

/// The kernel compiled for the baseline instruction set, for AVX2 and for AVX-512 (F, DQ, VL and BW).
enum class Form { Generic, Avx2, Avx512 };

/// Whether this build has the form and this processor (and its operating system) can run it.
[[nodiscard]] bool supported(Form form) noexcept;

/// The widest supported form; decided at the first call.
[[nodiscard]] Form best_form() noexcept;

/// "generic", "avx2" or "avx512".
[[nodiscard]] const char* name_of(Form form) noexcept;

struct Kernel {
  KernelPass forward;
  KernelPass inverse;
};

/// The form's functions. Throws InvalidArgument if it is not supported.
[[nodiscard]] Kernel kernel_of(Form form);

}  // namespace penstock::shuffle
