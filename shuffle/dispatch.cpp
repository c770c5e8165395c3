#include "shuffle/dispatch.h"

#include "core/base/error.h"

namespace penstock::shuffle {

bool supported(Form form) noexcept {
#ifdef PENSTOCK_X86_KERNELS
  switch (form) {
    case Form::Generic: return true;
    case Form::Avx2: return __builtin_cpu_supports("avx2") != 0;
    case Form::Avx512:
      return __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512dq") != 0 &&
             __builtin_cpu_supports("avx512vl") != 0 && __builtin_cpu_supports("avx512bw") != 0;
  }
  return false;
#else
  return form == Form::Generic;
#endif
}

Form best_form() noexcept {
  static const Form best = supported(Form::Avx512) ? Form::Avx512 : supported(Form::Avx2) ? Form::Avx2 : Form::Generic;
  return best;
}

const char* name_of(Form form) noexcept {
  switch (form) {
    case Form::Generic: return "generic";
    case Form::Avx2: return "avx2";
    case Form::Avx512: return "avx512";
  }
  return "unknown";
}

Kernel kernel_of(Form form) {
  // best_form() is the common case and known to be supported; asking the processor again would cost each small batch.
  if (form != best_form() && !supported(form)) {
    raise(ErrorKind::InvalidArgument, "permutation kernel {}: this machine cannot run it; the best here is {}",
          name_of(form), name_of(best_form()));
  }
  switch (form) {
#ifdef PENSTOCK_X86_KERNELS
    case Form::Avx2: return {forward_avx2, inverse_avx2};
    case Form::Avx512: return {forward_avx512, inverse_avx512};
#endif
    default: return {forward_generic, inverse_generic};
  }
}

}  // namespace penstock::shuffle
