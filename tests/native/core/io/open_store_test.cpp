// From a path or URL to its store.
#include "core/io/open_store.h"

#include "tests/native/core/io/memory_store.h"
#include "tests/native/message_of.h"

namespace penstock::testing {
namespace {

TEST(OpenStore, PathsAndFileUrlsAreOfTheLocalStoreAndAllElseIsRefusedWithoutSecrets) {
  const std::shared_ptr<ByteStore> local = std::make_shared<MemoryStore>();
  const auto path_of = [&](const std::string& url) {
    const Location found = open_store(url, local);
    EXPECT_EQ(found.store, local);
    return found.path;
  };
  for (const char* path : {"", "a", "/a/b.bin", "../a%20b", "a:b", "C:/a", "a/b://c", "://a", "1s3://a"}) {
    EXPECT_EQ(path_of(path), path);
  }
  EXPECT_EQ(path_of("file:///a/b.bin"), "/a/b.bin");
  EXPECT_EQ(path_of("FILE://localhost/a"), "/a");
  EXPECT_EQ(path_of("file:///a%20b/%C3%a9"), "/a b/\xC3\xA9");
  const auto refusal = [&](const std::string& url) {
    return message_of([&] { open_store(url, local); }, ErrorKind::InvalidArgument);
  };
  for (const char* url : {"file://host/a", "file://a"}) {
    EXPECT_NE(refusal(url).find("another host"), std::string::npos) << url;
  }
  for (const char* url : {"file:///a%", "file:///a%2", "file:///a%zz", "file:///a%00b"}) {
    EXPECT_NE(refusal(url).find("hexadecimal"), std::string::npos) << url;
  }
  EXPECT_EQ(
      refusal("s3://bucket/a"),
      "s3://…: only paths and file:// URLs are opened here; penstock.open in Python also opens http://, https://, "
      "s3://, gs://, az:// and the schemes of fsspec: open it there");
  EXPECT_TRUE(refusal("HTTPS://name:password@host/a?signature").starts_with("https://…: only paths"));
  EXPECT_EQ(refusal("HTTPS://name:password@host/a?signature").find("password"), std::string::npos);
}

}  // namespace
}  // namespace penstock::testing
