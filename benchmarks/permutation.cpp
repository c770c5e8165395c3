// What one index of a permutation costs: random indices of n = 2^28 + 1, batched (each form that this machine runs),
// scalar and inverse. Prints one line each: the median of several repeats and their spread, in the thread's processor
// time, so that other work on the machine counts less.
//   penstock_bench_permutation [n] [indices] [repeats]
#include "shuffle/permutation.h"

#include <fmt/format.h>

#include <time.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <random>
#include <vector>

namespace {

using penstock::shuffle::Form;
using penstock::shuffle::Permutation;

double thread_ns() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

/// Runs `work` once to warm up and `repeats` times more; prints ns an index.
void measure(const char* name, const char* form, std::size_t count, int repeats, const std::function<void()>& work) {
  work();
  std::vector<double> ns;
  for (int i = 0; i < repeats; ++i) {
    const double begin = thread_ns();
    work();
    ns.push_back((thread_ns() - begin) / static_cast<double>(count));
  }
  std::sort(ns.begin(), ns.end());
  fmt::print("{:<8} {:<8} {:7.2f} ns/index   (best {:.2f}, worst {:.2f}, {} repeats of {} indices)\n", name, form,
             ns[ns.size() / 2], ns.front(), ns.back(), repeats, count);
}

std::uint64_t argument(int argc, char** argv, int number, std::uint64_t otherwise) {
  return argc > number ? std::strtoull(argv[number], nullptr, 10) : otherwise;
}

}  // namespace

int main(int argc, char** argv) {
  const std::uint64_t n = argument(argc, argv, 1, (std::uint64_t{1} << 28) + 1);
  const auto count = static_cast<std::size_t>(argument(argc, argv, 2, std::uint64_t{1} << 20));
  const int repeats = static_cast<int>(argument(argc, argv, 3, 9));
  const Permutation permutation(n, 0x0123456789abcdefULL, 3);
  std::mt19937_64 random(1);
  std::vector<std::uint64_t> in(count);
  for (std::uint64_t& index : in) index = random() % n;
  std::vector<std::uint64_t> out(count);

  fmt::print("n = {}, best form here: {}\n", n, name_of(penstock::shuffle::best_form()));
  for (const Form form : {Form::Generic, Form::Avx2, Form::Avx512}) {
    if (!supported(form)) {
      fmt::print("{:<8} {:<8} not supported by this machine\n", "batch", name_of(form));
      continue;
    }
    measure("batch", name_of(form), count, repeats, [&] { permutation(in, out, form); });
    measure("inverse", name_of(form), count, repeats, [&] { permutation.inverse(in, out, form); });
  }
  measure("batch", "scalar", count, repeats, [&] {
    for (std::size_t i = 0; i < count; ++i) out[i] = permutation(in[i]);
  });
  measure("inverse", "scalar", count, repeats, [&] {
    for (std::size_t i = 0; i < count; ++i) out[i] = permutation.inverse(in[i]);
  });
  return 0;
}
