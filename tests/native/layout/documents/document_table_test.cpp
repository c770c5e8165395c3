// DocumentTable against a list: even and uneven blocks, empty documents, documents whose bytes lie far apart.
#include "layout/documents/document_table.h"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

namespace penstock::testing {
namespace {

using layout::DocumentTable;

struct Expected {
  std::uint64_t token;
  std::uint64_t tokens;
  std::uint64_t byte;
};

using Rule = std::function<std::uint64_t(std::uint64_t)>;

std::vector<Expected> fill(DocumentTable& table, std::uint64_t documents, const Rule& tokens, const Rule& gap) {
  std::vector<Expected> all;
  std::uint64_t token = 0;
  std::uint64_t byte = 7;
  for (std::uint64_t i = 0; i < documents; ++i) {
    table.add(tokens(i), byte);
    all.push_back({token, tokens(i), byte});
    token += tokens(i);
    byte += 2 * tokens(i) + gap(i);
  }
  table.finish();
  return all;
}

void expect_same(const DocumentTable& table, const std::vector<Expected>& all) {
  ASSERT_EQ(table.documents(), all.size());
  for (std::uint64_t i = 0; i < all.size(); ++i) {
    const DocumentTable::Document found = table.at(i);
    ASSERT_EQ(found.token, all[i].token) << i;
    ASSERT_EQ(found.tokens, all[i].tokens) << i;
    if (table.knows_bytes()) {
      ASSERT_EQ(found.byte, all[i].byte) << i;
    }
    for (const std::uint64_t token : {all[i].token, all[i].token + all[i].tokens - 1}) {
      ASSERT_TRUE(all[i].tokens == 0 || table.find(token) == i) << token;
    }
  }
}

// Blocks have 1,024 documents: counts around one and two of them.
TEST(DocumentTableTest, GivesEachDocumentAndFindsItByEachOfItsEnds) {
  const Rule nothing = [](std::uint64_t) { return 0; };
  const Rule uneven = [](std::uint64_t i) { return i * 7919 % 13; };  // some are empty
  const Rule even = [](std::uint64_t) { return 5; };
  const Rule even_then_one_longer = [](std::uint64_t i) { return i == 1023 ? 6 : 5; };
  const Rule far = [](std::uint64_t i) { return i % 3 == 0 ? std::uint64_t{1} << 31 : 0; };
  for (const std::uint64_t documents : {1, 2, 1023, 1024, 1025, 2047, 2048, 2049, 5000}) {
    for (const Rule& tokens : {uneven, even, even_then_one_longer}) {
      for (const Rule& gap : {nothing, even, far}) {
        for (const bool knows_bytes : {false, true}) {
          DocumentTable table(knows_bytes);
          expect_same(table, fill(table, documents, tokens, gap));
        }
      }
    }
  }
}

TEST(DocumentTableTest, DocumentsOfOneSizeTakeNoMemoryEach) {
  DocumentTable table(true);
  fill(
      table, 1'000'000, [](std::uint64_t) { return 2048; }, [](std::uint64_t) { return 12; });
  EXPECT_LT(table.memory(), 200'000U);
  DocumentTable uneven(false);
  fill(
      uneven, 1'000'000, [](std::uint64_t i) { return i % 2000; }, [](std::uint64_t) { return 0; });
  EXPECT_LT(uneven.memory(), 4'200'000U);
}

TEST(DocumentTableTest, MayBeEmpty) {
  DocumentTable table(false);
  table.finish();
  EXPECT_EQ(table.documents(), 0U);
  EXPECT_EQ(table.tokens(), 0U);
}

}  // namespace
}  // namespace penstock::testing
