// A loop over batches in C++20 that goes on where it stopped:
//   penstock_loop DATASET STATE STEPS
// takes STEPS batches of DATASET, from the state in the file STATE if that is there, prints a line for each and saves
// the state after the last one.
#include <penstock/core/engine/loader.h>
#include <penstock/core/io/local/local_store.h>
#include <penstock/layout/dataset.h>
#include <penstock/shuffle/uniform.h>

#include <array>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <exception>
#include <fstream>
#include <iostream>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace {

constexpr std::uint64_t kWindow = 16;
constexpr std::uint64_t kBatchSize = 4;
constexpr std::uint64_t kSeed = 7;

// A loader of this rank: batches of `inputs` and `labels`, both int64 [rows, kWindow], in the global shuffle of kSeed.
penstock::LoaderOptions options_of(const std::shared_ptr<const penstock::Source>& source, penstock::Share share) {
  auto order = std::make_shared<const penstock::shuffle::Uniform>(source->info().size, kSeed);
  penstock::CursorOptions cursor;
  cursor.epochs = 2;
  cursor.schedule = {{0, kBatchSize * share.world_size}};
  const std::array identities{source->info().identity};
  penstock::LoaderOptions options;
  options.job = std::make_shared<const penstock::Job>(std::move(order), identities, cursor);
  options.share = share;
  const penstock::ScalarType int64{'i', 8};
  options.formats = std::make_shared<const penstock::BatchFormats>(penstock::BatchFormats{penstock::BatchFormat(
      source, {penstock::FieldSpec{.name = "inputs", .field = "token", .type = int64, .skip = 0, .shorten = 1},
               penstock::FieldSpec{
                   .name = "labels", .field = "token", .type = int64, .skip = 1, .shorten = 1, .labels = true}})});
  options.threads = 2;
  options.max_bytes = std::uint64_t{1} << 28;
  return options;
}

// The next batch; null at the end of the run.
std::shared_ptr<penstock::Batch> next(penstock::Loader& loader) {
  while (true) {
    if (std::shared_ptr<penstock::Batch> batch = loader.poll()) return batch;
    if (loader.ended()) return nullptr;
    loader.wait(std::chrono::seconds(1));
  }
}

// The values of the batch's array number `at`, which lie in the batch's memory: valid as long as the batch is held.
std::span<const std::int64_t> values(const penstock::Batch& batch, std::size_t at) {
  const penstock::PlacedArray& array = batch.arrays.at(at);
  std::uint64_t count = 1;
  for (const std::uint64_t dim : array.shape.dims) count *= dim;
  return {reinterpret_cast<const std::int64_t*>(batch.slab.data() + array.at), count};
}

// A line for the position and one for the job, which is JSON without line ends.
void save(const penstock::State& state, const std::string& path) {
  std::ofstream file(path);
  file << state.version << '\n' << state.position << '\n' << state.job << '\n';
  if (!file.flush()) throw std::runtime_error(path + ": cannot be written");
}

void resume(penstock::Loader& loader, const std::string& path) {
  std::ifstream file(path);
  if (!file) return;  // the first run
  penstock::State state;
  if (!(file >> state.version >> state.position >> std::ws) || !std::getline(file, state.job)) {
    throw std::runtime_error(path + ": no state of penstock_loop");
  }
  std::cout << loader.load(state, penstock::OnMismatch::Refuse).message << '\n';
}

void run(const std::string& dataset_path, const std::string& state_path, std::uint64_t steps) {
  auto files = std::make_shared<penstock::LocalStore>();  // one of a process
  const auto dataset = penstock::layout::open_dataset({files, dataset_path});
  const auto source = penstock::layout::make_windows(dataset, kWindow, /*lookahead=*/1);
  penstock::Loader loader(options_of(source, {.rank = 0, .world_size = 1}));
  resume(loader, state_path);
  loader.begin();
  for (std::uint64_t step = 0; step < steps; ++step) {
    const std::shared_ptr<penstock::Batch> batch = next(loader);
    if (!batch) break;
    std::int64_t inputs = 0;
    for (const std::int64_t token : values(*batch, 0)) inputs += token;
    std::int64_t labels = 0;
    for (const std::int64_t token : values(*batch, 1)) labels += token;
    std::cout << "position " << batch->plan.position << ": " << batch->plan.valid << " windows, inputs sum up to "
              << inputs << ", labels to " << labels << '\n';
  }
  save(loader.state(), state_path);
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t steps = 0;
  const std::string_view given = argc == 4 ? argv[3] : "";
  if (std::from_chars(given.data(), given.data() + given.size(), steps).ec != std::errc()) {
    std::cerr << "usage: penstock_loop DATASET STATE STEPS\n";
    return 2;
  }
  try {
    run(argv[1], argv[2], steps);
  } catch (const std::exception& error) {  // penstock's own are penstock::Error, which has a kind
    std::cerr << "penstock_loop: " << error.what() << '\n';
    return 1;
  }
  return 0;
}
