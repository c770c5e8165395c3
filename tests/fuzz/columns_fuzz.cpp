// Any bytes as columns.bin: values beside documents and windows, whole columns, and conditions on them.
#include "layout/values/dataset_columns.h"
#include "layout/values/read_column.h"
#include "layout/values/with_columns.h"
#include "layout/where/choosing.h"
#include "tests/fuzz/golden_dataset.h"

#include <array>

namespace penstock::fuzz {
namespace {

constexpr const char* kConditions[] = {"plate = 'plate ü0' or line in ('a', 'x')",
                                       "score > 0.5 and not flag",
                                       "n in (1, -2, 7) or plate is null",
                                       "line <> 'b' and n <= 3",
                                       "score < n",
                                       "flag or score is not null",
                                       "plate = line"};

bool read_whole(const layout::Dataset& dataset) {
  bool some = false;
  for (std::size_t column = 0; column < dataset.columns.size(); ++column) {
    const std::uint64_t count = dataset.column_table->entry_starts().back();
    std::vector<std::byte> values(count * dataset.columns[column].bytes());
    some |= accepts([&] { layout::read_column(dataset, column, 0, count, values.data(), {}); });
  }
  return some;
}

void choose(const layout::DatasetPtr& dataset, const char* condition) {
  accepts([&] {
    layout::Choosing choosing(dataset, condition, {});
    choosing.look(0, choosing.documents());
    require(choosing.chosen().size() == choosing.documents(), "a choice among other documents");
  });
}

}  // namespace

bool columns(Input input) {
  static std::array datasets{GoldenDataset("dataset-v2/compact"), GoldenDataset("dataset-v2/ids")};
  const std::size_t which = take_choice(input, datasets.size());
  const std::size_t first = take_choice(input, 256);
  const layout::DatasetPtr& dataset = datasets[which].dataset();
  datasets[which].fill({"00000/columns.bin"}, input);
  if (which == 1) datasets[which].fill({"00001/columns.bin"}, input);
  const std::vector<std::string> names{"plate", "score", "point", "line", "flag", "n"};
  bool some = false;
  accepts([&] { some |= read_some(*layout::make_windows(dataset, 100, 0, names), first); });
  accepts([&] { some |= read_some(*layout::make_documents(dataset, names), first); });
  accepts([&] { some |= read_some(*layout::make_values(dataset, names), 0); });
  some |= read_whole(*dataset);
  choose(dataset, kConditions[first % std::size(kConditions)]);
  return some;
}

}  // namespace penstock::fuzz
