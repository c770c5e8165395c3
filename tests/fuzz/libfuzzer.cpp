// One binary for all targets: PENSTOCK_FUZZ_TARGET names the one that libFuzzer runs.
//
// Beside what sanitizers see, an input fails that takes more than 64 MiB and its own size, or more than a second of the
// processor's time. The last line says inputs, most memory of one and slowest one.
#include "tests/fuzz/json_mutator.h"
#include "tests/fuzz/targets.h"

#include <sanitizer/allocator_interface.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::fuzz {
namespace {

constexpr std::int64_t kMostBytes = 64 << 20;
constexpr double kMostSeconds = 1;

const Target* target = nullptr;
std::atomic<bool> is_counting{false};
std::atomic<std::int64_t> live_bytes{0};
std::atomic<std::int64_t> most_bytes{0};  // of this input
std::uint64_t inputs = 0;
std::int64_t most_bytes_of_all = 0;
double slowest_of_all = 0;

void on_malloc(const volatile void* /*at*/, std::size_t bytes) {
  if (!is_counting) return;
  const std::int64_t live = live_bytes += static_cast<std::int64_t>(bytes);
  if (live > most_bytes) most_bytes = live;
}

void on_free(const volatile void* at) {
  if (!is_counting || at == nullptr) return;
  live_bytes -= static_cast<std::int64_t>(__sanitizer_get_allocated_size(at));
}

double seconds_of_processor() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Inputs that were accepted, the first ones for good. Most of what libFuzzer keeps is refused early, by one of many
// errors of syntax, and so are nearly all of its mutations.
class AcceptedInputs {
 public:
  void add(Input input) {
    if (inputs_.size() < kMost) {
      inputs_.push_back(text_of(input));
    } else {
      inputs_[kMost / 2 + added_++ * 2654435761U % (kMost / 2)] = view_of(input);
    }
  }
  [[nodiscard]] std::string_view any(unsigned seed) const noexcept {
    return inputs_.empty() ? std::string_view() : inputs_[seed % inputs_.size()];
  }

 private:
  static constexpr std::size_t kMost = 256;
  std::vector<std::string> inputs_;
  std::size_t added_ = 0;
};

AcceptedInputs& accepted_inputs() {
  static AcceptedInputs inputs;
  return inputs;
}

void print_record() {
  std::fprintf(stderr, "penstock_fuzz: %s inputs=%llu memory=%lld slowest_us=%.0f\n", target->name,
               static_cast<unsigned long long>(inputs), static_cast<long long>(most_bytes_of_all),
               1e6 * slowest_of_all);
}

void run(Input input) {
  live_bytes = most_bytes = 0;
  const double begin = seconds_of_processor();
  is_counting = true;
  const bool is_accepted = target->run(input);
  is_counting = false;
  const double seconds = seconds_of_processor() - begin;
  if (is_accepted) accepted_inputs().add(input);
  ++inputs;
  most_bytes_of_all = std::max<std::int64_t>(most_bytes_of_all, most_bytes);
  slowest_of_all = std::max(slowest_of_all, seconds);
  require(most_bytes <= kMostBytes + static_cast<std::int64_t>(input.size()), "an input took more than 64 MiB");
  require(seconds <= kMostSeconds, "an input took more than a second");
}

}  // namespace
}  // namespace penstock::fuzz

extern "C" {

std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

int LLVMFuzzerInitialize(int* /*count*/, char*** /*arguments*/) {
  using namespace penstock::fuzz;
  const char* const name = std::getenv("PENSTOCK_FUZZ_TARGET");
  target = find_target(name == nullptr ? "" : name);
  if (target == nullptr) {
    std::fprintf(stderr, "PENSTOCK_FUZZ_TARGET=NAME, of");
    for (const Target& each : targets()) std::fprintf(stderr, " %s", each.name);
    std::fprintf(stderr, "\n");
    std::exit(2);
  }
  __sanitizer_install_malloc_and_free_hooks(on_malloc, on_free);
  std::atexit(print_record);
  return 0;
}

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  penstock::fuzz::run({reinterpret_cast<const std::byte*>(data), size});
  return 0;
}

// Half of the mutations begin with an input that was accepted. Half of those of JSON change its values, so that it
// stays JSON.
std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size, unsigned seed) {
  using namespace penstock::fuzz;
  if (const std::string_view good = accepted_inputs().any(seed / 4); seed / 2 % 2 == 0 && !good.empty()) {
    size = std::min(good.size(), max_size);
    std::memcpy(data, good.data(), size);
  }
  if (!target->has_json || seed % 2 == 0) return LLVMFuzzerMutate(data, size, max_size);
  const std::string mutated = mutate_json({reinterpret_cast<const char*>(data), size}, seed);
  const std::size_t kept = std::min(mutated.size(), max_size);
  std::memcpy(data, mutated.data(), kept);
  return kept;
}

}  // extern "C"
