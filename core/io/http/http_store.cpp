#include "core/io/http/http_store.h"

#include "core/base/error.h"
#include "core/base/fork_count.h"
#include "core/base/retry_budget.h"
#include "core/io/http/address.h"
#include "core/io/http/http_channel.h"
#include "core/io/naming.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace penstock {
namespace {

/// One request of 16 KiB costs a client 39 µs of CPU, one of 64 KiB 43; a shared network is scarcer than that.
constexpr std::uint64_t kNearBytes = 64 << 10;
constexpr std::uint64_t kMostAskedBytes = 8 << 20;

std::uint64_t total_of(const Reply& reply, const std::string& path) {
  if (reply.range && reply.range->total) return *reply.range->total;
  raise(ErrorKind::IoError, "{}: the server does not say how many bytes the file has", path);
}

class PlainAddresses final : public Addresses {
 public:
  PlainAddresses(std::vector<HiddenParts> hidden, bool has_headers)
      : hidden_(std::move(hidden)), has_headers_(has_headers) {}

  std::optional<std::string> of(const std::string& path, const std::function<void()>& /*later*/) override {
    const HiddenParts* parts = nullptr;  // of the longest address that it lies in
    for (const HiddenParts& each : hidden_) {
      const bool lies_in =
          path.starts_with(each.shown) && (path.size() == each.shown.size() || path[each.shown.size()] == '/');
      if (lies_in && (parts == nullptr || each.shown.size() > parts->shown.size())) parts = &each;
    }
    const std::size_t host = path.find("://") + 3;
    const std::size_t rest = std::min(path.find('/', host), path.size());
    std::string address = path.substr(0, host);
    if (parts != nullptr && !parts->userinfo.empty()) address.append(parts->userinfo).append(1, '@');
    address.append(path, host, rest - host).append(encoded_path(std::string_view(path).substr(rest)));
    if (parts != nullptr && !parts->query.empty()) address.append(1, '?').append(parts->query);
    return address;
  }

  [[nodiscard]] bool are_fixed() const override { return true; }
  bool renew(const std::string& /*path*/) override { return false; }
  [[nodiscard]] bool are_secret() const override { return !hidden_.empty(); }

  [[nodiscard]] std::string credentials() const override {
    if (!hidden_.empty()) return "with the password or the query of the address";
    return has_headers_ ? "with the headers of Storage" : "without credentials: Storage(headers={…}) gives some";
  }

  std::vector<std::string> list(const std::string& path) override {
    raise(ErrorKind::InvalidArgument, "{}: HTTP lists no folders: name a dataset's folder, or each file", path);
  }

 private:
  const std::vector<HiddenParts> hidden_;
  const bool has_headers_;
};

}  // namespace

std::shared_ptr<Addresses> plain_addresses(std::vector<HiddenParts> hidden, bool has_headers) {
  return std::make_shared<PlainAddresses>(std::move(hidden), has_headers);
}

HttpStore::HttpStore(HttpOptions options, std::shared_ptr<Addresses> addresses)
    : shared_(std::make_shared<HttpShared>(std::move(options), std::move(addresses))), forks_(fork_count()) {
  (void)curl();
}

HttpStore::~HttpStore() {
  if (forks_ == fork_count()) shared_->addresses->stop();
}

void HttpStore::refuse_child() const {
  if (forks_ == fork_count()) return;
  raise(
      ErrorKind::InvalidArgument,
      "a dataset that is read over HTTP was opened before this process was forked: open it here, or start processes by "
      "spawn");
}

std::unique_ptr<Channel> HttpStore::open_channel(ChannelMode mode) {
  if (mode == ChannelMode::NonBlocking) return nullptr;
  refuse_child();
  return std::make_unique<HttpChannel>(shared_);
}

Reply HttpStore::ask(Request request) const {
  refuse_child();
  std::vector<Request> requests;
  requests.push_back(std::move(request));
  HttpChannel channel = naming(requests.front().path, [&] { return HttpChannel(shared_); });
  return std::move(channel.ask(std::move(requests)).front());
}

void HttpStore::look_ahead(const std::vector<std::string>& paths) {
  refuse_child();
  RetryBudget budget;
  const RetryBudget::Operation operation(budget);
  std::vector<std::string> heads(paths.size(), std::string(FileEnds::kBytes, '\0'));
  std::vector<Request> requests(paths.size());
  for (std::size_t i = 0; i < paths.size(); ++i) {
    requests[i].path = paths[i];
    requests[i].into = std::as_writable_bytes(std::span(heads[i]));
    requests[i].end = FileEnds::kBytes;
    requests[i].may_be_short = true;
  }
  HttpChannel channel = naming(paths.front(), [&] { return HttpChannel(shared_); });
  const std::vector<Reply> replies = channel.ask(std::move(requests));
  requests.clear();
  std::vector<FileEnds::Ends> found;
  found.reserve(paths.size());
  for (std::size_t i = 0; i < paths.size(); ++i) {
    FileEnds::Ends& ends = found.emplace_back(total_of(replies[i], paths[i]));
    shared_->keep_etag(paths[i], replies[i].etag);
    ends.head = heads[i].substr(0, ends.head.size());
    if (ends.tail.empty()) continue;
    Request request;
    request.path = paths[i];
    request.into = std::as_writable_bytes(std::span(ends.tail));
    request.begin = ends.tail_begin();
    request.end = request.file_bytes = ends.bytes;
    requests.push_back(std::move(request));
  }
  (void)channel.ask(std::move(requests));
  for (std::size_t i = 0; i < paths.size(); ++i) ends_.keep(paths[i], std::move(found[i]));
}

void HttpStore::drop_ends() noexcept {
  ends_.drop();
}

std::uint64_t HttpStore::size(const std::string& path, Links /*links*/) {
  if (const auto bytes = ends_.bytes_of(path)) return *bytes;
  std::byte first{};
  Request request;
  request.path = path;
  request.into = {&first, 1};
  request.end = 1;
  request.may_be_short = true;
  const Reply reply = ask(std::move(request));
  shared_->keep_etag(path, reply.etag);
  return total_of(reply, path);
}

std::string HttpStore::etag(const std::string& path) const {
  return shared_->etag_of(path);
}

void HttpStore::read_small(const std::string& path, std::uint64_t offset, std::span<std::byte> out) {
  if (out.empty() || ends_.read(path, offset, out)) return;
  Request request;
  request.path = path;
  request.into = out;
  request.begin = offset;
  request.end = offset + out.size();
  request.is_same_file = true;
  (void)ask(std::move(request));
}

bool HttpStore::read_whole(const std::string& path, std::uint64_t most, std::string& text) {
  Request request;
  request.path = path;
  request.whole = &text;
  request.most = most;
  (void)ask(std::move(request));
  return true;
}

std::vector<std::string> HttpStore::list(const std::string& path) {
  return shared_->addresses->list(path);
}

void HttpStore::forget(std::span<const std::byte> files) noexcept {
  if (forks_ == fork_count()) shared_->forget(files);
}

std::size_t HttpStore::reads_in_flight() {
  return shared_->options.connections;
}

std::uint64_t HttpStore::near_bytes() const {
  return kNearBytes;
}

std::uint64_t HttpStore::most_bytes() const {
  return kMostAskedBytes;
}

}  // namespace penstock
