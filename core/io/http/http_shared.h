// What the channels of one HTTP store share: how to ask, where files are, and what was seen of them.
//
// Any thread.
#pragma once

#include "core/io/file.h"
#include "core/io/http/flights.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace penstock {

struct HttpOptions {
  std::string server;                // whose requests the process counts together
  std::vector<std::string> headers;  // "Name: value"
  std::string ca_file;               // certificates to trust instead of the system's; empty: those
  std::size_t connections = 64;      // requests under way at most, of all that asks this server
  std::chrono::nanoseconds deadline = std::chrono::seconds(60);  // of one read, from its first attempt on
  bool check_etag = true;
  std::function<void()> while_waiting;  // called several times a second by what waits for an answer; may throw
};

/// From the paths of a store's files to what a server is asked for.
class Addresses {
 public:
  virtual ~Addresses() = default;
  /// Of the file at `path`, with all that opens it. None: it is not known yet and being made; `later` is called once it
  /// is, by any thread, or once it cannot be, which the next of() throws.
  virtual std::optional<std::string> of(const std::string& path, const std::function<void()>& later) = 0;
  /// Whether of() a path is always the same.
  [[nodiscard]] virtual bool are_fixed() const { return false; }
  /// The server answered 401 or 403 to of(path). True if of(path) is another address now, which is worth an attempt.
  virtual bool renew(const std::string& path) = 0;
  /// Whether an address alone opens the file, so that no other host may see it.
  [[nodiscard]] virtual bool are_secret() const = 0;
  /// With what it asks, for messages: "without credentials".
  [[nodiscard]] virtual std::string credentials() const = 0;
  /// As ByteStore::list().
  virtual std::vector<std::string> list(const std::string& path) = 0;
  /// Nobody will ask any more.
  virtual void stop() {}
};

class HttpShared {
 public:
  HttpShared(HttpOptions options_, std::shared_ptr<Addresses> addresses_)
      : options(std::move(options_)),
        addresses(std::move(addresses_)),
        flights(flights_to(options.server, options.connections)) {}

  /// The ETag that came with the file's first bytes, or with those of its path while it was opened; empty before.
  std::string etag_of(const File& file);
  /// The first is kept. What is: another one, where another answer was quicker.
  std::string keep_etag(const File& file, const std::string& etag);
  void keep_etag(const std::string& path, const std::string& etag);
  std::string etag_of(const std::string& path);
  /// Files of this part of memory are no more.
  void forget(std::span<const std::byte> files) noexcept;

  const HttpOptions options;
  const std::shared_ptr<Addresses> addresses;
  FlightLimit& flights;
  std::atomic<bool> has_answered{false};  // some request, in any way
  std::atomic<bool> has_given_range{false};

 private:
  std::mutex mutex_;
  struct Seen {
    File file;  // a copy, so that another File at the same address is noticed
    std::string etag;
  };
  std::unordered_map<const File*, Seen> etags_;
  std::unordered_map<std::string, std::string> opened_etags_;  // by path
};

}  // namespace penstock
