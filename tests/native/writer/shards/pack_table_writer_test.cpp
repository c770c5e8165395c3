// Tables in files: the rows of a table in memory, and every damage is seen.
#include "writer/shards/pack_table_writer.h"

#include "core/base/error.h"
#include "layout/packed/packed.h"
#include "tests/native/layout/failing_allocations.h"
#include "tests/native/layout/model.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <iterator>
#include <random>
#include <utility>

namespace {

std::function<void()> before_lock;  // called once, before the next lock

}  // namespace

// In place of the C library's.
extern "C" int flock(int fd, int how) noexcept {
  if (before_lock) std::exchange(before_lock, nullptr)();
  return static_cast<int>(::syscall(SYS_flock, fd, how));
}

namespace penstock::testing {
namespace {

using layout::PackingRule;
using layout::PackTable;
using layout::SpanKind;
using writer::PackTableWriter;

Model many_documents() {
  std::mt19937_64 random(1);
  std::vector<ModelShard> shards(2);
  for (ModelShard& shard : shards) {
    for (int i = 0; i < 400; ++i) shard.spans.push_back({random() % 9, ""});
  }
  return {SpanKind::Compact, std::move(shards)};
}

layout::PackHeader write(const Model& model, const PackingRule& rule, const std::string& path, std::uint64_t step) {
  PackTableWriter writer(model.dataset(), rule, {}, path);
  while (writer.step(step)) {
  }
  return writer.commit();
}

std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string all_rows(const Source& source) {
  std::string text;
  for (std::uint64_t i = 0; i < source.info().size; ++i) {
    const Driven row = driven(source, i);
    text.append(reinterpret_cast<const char*>(row.row.records), 2 * row.row.length);
    for (const Span& span : row.row.spans) {
      text += fmt::format("{}-{}:{}.{};", span.start, span.stop, span.shard, span.entry);
    }
  }
  return text;
}

TEST(PackTableWriterTest, AFileGivesTheRowsOfATableInMemoryWhateverTheSteps) {
  const Model model = many_documents();
  const PackingRule rule{.window = 16, .group = 100};
  layout::DatasetPacker packer(model.dataset(), rule, {});
  while (packer.step(500)) {
  }
  const layout::PackHeader header = packer.header();
  const auto memory = std::make_shared<const PackTable>(header, std::move(packer.rows()));
  const std::string wanted = all_rows(*layout::make_packed(model.dataset(), memory));
  const std::string path = model.folder().path("table");
  std::string first;
  for (const std::uint64_t step : {1U, 177U, 100'000U}) {
    EXPECT_EQ(write(model, rule, path, step), header);
    if (first.empty()) first = text_of(path);
    EXPECT_EQ(text_of(path), first);
    EXPECT_EQ(first.size(), header.file_bytes());
    const auto table = std::make_shared<const PackTable>(local(path), *model.dataset());
    EXPECT_EQ(all_rows(*layout::make_packed(model.dataset(), table)), wanted);
    std::filesystem::remove(path);
  }
}

TEST(PackTableWriterTest, ATableWithoutRowsIsRefusedAndLeavesNoFile) {
  const Model model = many_documents();
  const std::string path = model.folder().path("table");
  const PackingRule rule{.window = 4'000,
                         .fit = layout::Fit::Next,
                         .long_documents = layout::LongDocuments::Truncate,
                         .fill = layout::Fill::Exact};
  expect_error([&] { write(model, rule, path, 100); }, ErrorKind::InvalidArgument,
               "none of its 800 documents has records to pack into rows of 4,000, or those");
  EXPECT_FALSE(std::filesystem::exists(path));
  for (const auto& entry : std::filesystem::directory_iterator(model.folder().path("."))) {
    EXPECT_EQ(entry.path().filename().string().find("table"), std::string::npos) << "an unfinished one";
  }
}

TEST(PackTableWriterTest, ARuleThatVersion1HasNoMembersForIsOfVersion2) {
  const Model model = many_documents();
  const std::string path = model.folder().path("table");
  for (const auto& [rule, version] :
       std::vector<std::pair<PackingRule, std::string>>{{{.window = 16}, "1"},
                                                        {{.window = 16, .max_document = 5}, "2"},
                                                        {{.window = 16, .max_documents = 5}, "2"}}) {
    const layout::PackHeader header = write(model, rule, path, 100);
    EXPECT_NE(text_of(path).find("\"version\": " + version + ","), std::string::npos);
    EXPECT_EQ(PackTable(local(path), *model.dataset()).header(), header);
    EXPECT_EQ(header.rule, rule);
    std::filesystem::remove(path);
  }
}

TEST(PackTableWriterTest, AConditionBehindTheChecksIsOfVersion3AndHasAMost) {
  const Model model = many_documents();
  const std::string path = model.folder().path("table");
  for (const std::size_t size : {std::size_t{100}, std::size_t{3'000}, std::size_t{5'000}, std::size_t{1} << 20}) {
    const std::string where = fmt::format(R"({{"condition":"{}"}})", std::string(size, 'a'));
    PackTableWriter writer(model.dataset(), {.window = 16}, {}, path, nullptr, where);
    while (writer.step(100)) {
    }
    const layout::PackHeader header = writer.commit();
    const std::string version = size > 4'000 ? "3" : "2";
    EXPECT_NE(text_of(path).find("\"version\": " + version + ","), std::string::npos);
    const PackTable table(local(path), *model.dataset());
    EXPECT_EQ(table.header(), header);
    EXPECT_EQ(table.header().where, where);
    EXPECT_EQ(text_of(path).size(), header.file_bytes());
    std::filesystem::remove(path);
  }
  const std::string most(layout::kMostPackWhereBytes, 'a');
  expect_error([&] { PackTableWriter(model.dataset(), {.window = 16}, {}, path, nullptr, "{" + most + "}"); },
               ErrorKind::InvalidArgument, "penstock annotate");
}

TEST(PackTableWriterTest, ADamagedTableIsCorruptAndOneOfAnotherDatasetIsRefused) {
  const Model model = many_documents();
  const PackingRule rule{.window = 16, .group = 100};
  const std::string path = model.folder().path("table");
  write(model, rule, path, 1'000);
  const std::string whole = text_of(path);
  const auto open = [&](const std::string& text) {
    const std::string damaged = model.folder().path("damaged");
    std::ofstream(damaged, std::ios::binary) << text;
    const auto table = std::make_shared<const PackTable>(local(damaged), *model.dataset());
    all_rows(*layout::make_packed(model.dataset(), table));
  };
  open(whole);
  // A flipped bit anywhere: in the header, in pieces, in the ends, in the checks. Zeros after a header are nobody's.
  for (std::size_t at = 0; at < whole.size(); at += at < 600 ? 13 : 499) {
    if (at >= whole.find('\0') && at < layout::kPackHeaderBytes) continue;
    std::string text = whole;
    text[at] = static_cast<char>(text[at] ^ 4);
    message_of([&] { open(text); }, ErrorKind::Corruption);
  }
  for (const std::size_t size : {std::size_t{0}, std::size_t{100}, std::size_t{4096}, whole.size() - 1}) {
    message_of([&] { open(whole.substr(0, size)); }, ErrorKind::Corruption);
  }
  layout::Dataset other = *model.dataset();
  const_cast<std::string&>(other.fingerprint) = "another";
  expect_error([&] { PackTable table(local(path), other); }, ErrorKind::InvalidArgument, "penstock pack");
}

TEST(PackTableWriterTest, NothingIsLeftOfAFileThatWasNotFinishedAndNoneIsReplaced) {
  const Model model = many_documents();
  const std::string folder = model.folder().path("tables");
  std::filesystem::create_directory(folder);
  { PackTableWriter(model.dataset(), {.window = 16}, {}, folder + "/table").step(10); }
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  write(model, {.window = 16}, folder + "/table", 10'000);
  message_of([&] { write(model, {.window = 16}, folder + "/table", 10); }, ErrorKind::InvalidArgument);
  EXPECT_THROW(write(model, {.window = 16}, folder + "/none/table", 10), Error);
}

std::vector<std::string> paths_in(const std::string& folder) {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) paths.push_back(entry.path().string());
  return paths;
}

TEST(PackTableWriterTest, OneThatIsTakenForDeadBeforeItIsLockedIsMadeAgain) {
  const Model model = many_documents();
  const std::string folder = model.folder().path("tables");
  for (const bool is_removed : {true, false}) {  // else the other run has locked it, and is about to
    std::filesystem::create_directory(folder);
    std::string first;
    int other = -1;
    before_lock = [&] {
      first = paths_in(folder).at(0);
      if (is_removed) {
        ::unlink(first.c_str());
      } else {
        other = ::open(first.c_str(), O_RDWR | O_CLOEXEC);
        ::flock(other, LOCK_EX | LOCK_NB);
      }
    };
    {
      PackTableWriter writer(model.dataset(), {.window = 16}, {}, folder + "/table");
      ASSERT_FALSE(first.empty());
      if (!is_removed) {
        ::unlink(first.c_str());
        ::close(other);
      }
      while (writer.step(1'000)) {
      }
      writer.commit();
    }
    EXPECT_EQ(paths_in(folder), std::vector{folder + "/table"});
    std::filesystem::remove_all(folder);
  }
}

TEST(PackTableWriterTest, WithoutMemoryNothingIsLeftOfAFile) {
  const Model model = many_documents();
  const layout::DatasetPtr dataset = model.dataset();
  const std::string folder = model.folder().path("tables");
  std::filesystem::create_directory(folder);
  std::uint64_t refused = 0;
  for (std::uint64_t first = 1;; ++first) {
    fail_allocations(first, false);
    try {
      const PackTableWriter writer(dataset, {.window = 16}, {}, folder + "/table");
    } catch (const std::bad_alloc&) {
      ++refused;
    } catch (const Error&) {
      ++refused;
    }
    stop_failing_allocations();
    EXPECT_TRUE(std::filesystem::is_empty(folder)) << "at allocation " << first;
    std::filesystem::remove_all(folder);
    std::filesystem::create_directory(folder);
    if (failed_allocations() == 0) break;
  }
  EXPECT_GT(refused, 5U);
}

}  // namespace
}  // namespace penstock::testing
