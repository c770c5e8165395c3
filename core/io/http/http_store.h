// HttpStore: files of a server, read by ranges of them over HTTP.
//
// Nothing is opened before it is read. What a reply must be, what is tried again and for how long: http/transfer.h. A
// child after a fork may not read: libcurl's handles are its parent's. Any thread.
#pragma once

#include "core/io/byte_store.h"
#include "core/io/file_ends.h"
#include "core/io/http/http_shared.h"
#include "core/io/http/transfer.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace penstock {

class HttpStore final : public ByteStore, public AsksAhead {
 public:
  /// Throws InvalidArgument where there is no libcurl.
  HttpStore(HttpOptions options, std::shared_ptr<Addresses> addresses);
  ~HttpStore() override;
  HttpStore(const HttpStore&) = delete;
  HttpStore& operator=(const HttpStore&) = delete;

  std::unique_ptr<Channel> open_channel(ChannelMode mode) override;
  std::uint64_t size(const std::string& path, Links links) override;
  void read_small(const std::string& path, std::uint64_t offset, std::span<std::byte> out) override;
  /// Two requests a file, the second ones once all of the first are answered.
  void look_ahead(const std::vector<std::string>& paths) override;
  void drop_ends() noexcept override;
  bool read_whole(const std::string& path, std::uint64_t most, std::string& text) override;
  std::vector<std::string> list(const std::string& path) override;
  void forget(std::span<const std::byte> files) noexcept override;
  [[nodiscard]] std::size_t reads_in_flight() override;
  [[nodiscard]] std::uint64_t near_bytes() const override;
  [[nodiscard]] std::uint64_t most_unwanted() const override { return 50; }
  [[nodiscard]] std::uint64_t most_bytes() const override;
  [[nodiscard]] bool is_far() const override { return true; }
  void while_waiting() override {
    if (shared_->options.while_waiting) shared_->options.while_waiting();
  }
  [[nodiscard]] std::string name() override { return "http"; }
  /// The ETag that came when the file's size was asked for; empty if none came.
  [[nodiscard]] std::string etag(const std::string& path) const;

 private:
  void refuse_child() const;
  Reply ask(Request request) const;

  const std::shared_ptr<HttpShared> shared_;
  const std::uint64_t forks_;
  FileEnds ends_;
};

/// What an address has that may not be shown.
struct HiddenParts {
  std::string shown;     // the rest of it: a file, or the folder of files that are asked for with the same parts
  std::string userinfo;  // before the host
  std::string query;     // at the end
};

/// Addresses that are the paths themselves, with the hidden parts of the first of `hidden` that they lie in.
std::shared_ptr<Addresses> plain_addresses(std::vector<HiddenParts> hidden, bool has_headers);

}  // namespace penstock
