// From a path or URL to its store.
#include "core/io/open_store.h"

#include "core/base/error.h"
#include "tests/native/core/io/memory_store.h"
#include "tests/native/message_of.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace penstock {
namespace {

const std::shared_ptr<ByteStore> local = std::make_shared<testing::MemoryStore>();

std::string refusal(const std::string& url) {
  return testing::message_of([&] { open_store(url, local); }, ErrorKind::InvalidArgument);
}

TEST(OpenStore, PathsAreOfTheLocalStoreAsTheyAre) {
  for (const char* path : {"", "a", "/a/b.bin", "../a%20b", "a:b", "C:/a", "a/b://c", "://a", "1s3://a"}) {
    const Location found = open_store(path, local);
    EXPECT_EQ(found.store, local);
    EXPECT_EQ(found.path, path);
  }
}

TEST(OpenStore, FileUrlsArePathsOfThisMachine) {
  EXPECT_EQ(open_store("file:///a/b.bin", local).path, "/a/b.bin");
  EXPECT_EQ(open_store("FILE://localhost/a", local).path, "/a");
  EXPECT_EQ(open_store("file:///a%20b/%C3%a9", local).path, "/a b/\xC3\xA9");
  EXPECT_EQ(open_store("file:///a", local).store, local);
}

TEST(OpenStore, FileUrlsOfOtherMachinesOrWithWrongEscapesAreRefused) {
  EXPECT_NE(refusal("file://host/a").find("another host"), std::string::npos);
  EXPECT_NE(refusal("file://a").find("another host"), std::string::npos);
  for (const char* url : {"file:///a%", "file:///a%2", "file:///a%zz", "file:///a%00b"}) {
    EXPECT_NE(refusal(url).find("hexadecimal"), std::string::npos) << url;
  }
}

TEST(OpenStore, OtherSchemesAreRefusedWithThoseThatThereAreAndWithoutSecrets) {
  EXPECT_EQ(
      refusal("s3://bucket/a"),
      "s3://…: only paths and file:// URLs are opened here; penstock.open in Python also opens http://, https://, "
      "s3://, gs://, az:// and the schemes of fsspec: open it there");
  EXPECT_TRUE(refusal("HTTPS://name:password@host/a?signature").starts_with("https://…: only paths"));
  EXPECT_EQ(refusal("HTTPS://name:password@host/a?signature").find("password"), std::string::npos);
}

}  // namespace
}  // namespace penstock
