#include "bindings/python_store.h"

#include "bindings/gil.h"
#include "bindings/python_channel.h"
#include "core/base/fork_count.h"
#include "core/base/retry_budget.h"

#include <chrono>
#include <optional>
#include <utility>

namespace penstock::bindings {
namespace {

constexpr std::uint64_t kNearBytes = 64 << 10;  // as over HTTP, where it was measured (core/io/http/http_store.cpp)

constexpr std::chrono::milliseconds kSignalPeriod{50};

StoreRequest request_for(Wanted wanted, const std::string& path) {
  StoreRequest request;
  request.wanted = wanted;
  request.path = path;
  return request;
}

StoreRequest request_for(const std::string& path, std::uint64_t offset, std::span<std::byte> into) {
  StoreRequest request = request_for(Wanted::Range, path);
  request.offset = offset;
  request.size = into.size();
  request.into = into;
  return request;
}

}  // namespace

PythonStore::PythonStore(std::shared_ptr<PythonCalls> calls, bool has_whole, std::function<void()> while_waiting)
    : calls_(std::move(calls)), has_whole_(has_whole), while_waiting_(std::move(while_waiting)), forks_(fork_count()) {}

PythonStore::~PythonStore() {
  if (forks_ == fork_count()) calls_->stop();
}

void PythonStore::refuse_child() const {
  if (forks_ == fork_count()) return;
  raise(ErrorKind::InvalidArgument,
        "a dataset that is read through Python was opened before this process was forked: open it here, or start "
        "processes by spawn");
}

std::unique_ptr<Channel> PythonStore::open_channel(ChannelMode mode) {
  if (mode == ChannelMode::NonBlocking) return nullptr;
  refuse_child();
  return std::make_unique<PythonChannel>(calls_);
}

// Those requests, answered.
StoreRequests PythonStore::ask_all(std::vector<StoreRequest> requests) {
  refuse_child();
  StoreRequests asked;
  asked.reserve(requests.size());
  for (StoreRequest& each : requests) {
    each.budget = RetryBudget::present();
    asked.push_back(std::make_shared<StoreRequest>(std::move(each)));
  }
  if (asked.empty()) return asked;
  std::optional<Unlocked> released;  // threads of Python's are to answer
  if (has_gil()) released.emplace();
  struct Waits {
    explicit Waits(PythonCalls& calls_) : calls(calls_) {}
    ~Waits() { calls.leave(asker); }
    Waits(const Waits&) = delete;
    Waits& operator=(const Waits&) = delete;
    PythonCalls& calls;
    Asker asker;
  } waits(*calls_);
  calls_->push(waits.asker, asked);
  StoreRequests ended;
  for (std::size_t left = asked.size(); left > 0;) {
    calls_->collect(waits.asker, ended, kSignalPeriod);
    if (ended.empty() && while_waiting_) while_waiting_();
    for (const auto& each : ended) {
      if (each->error) std::rethrow_exception(each->error);
    }
    left -= ended.size();
  }
  return asked;
}

std::shared_ptr<StoreRequest> PythonStore::ask(StoreRequest request) {
  std::vector<StoreRequest> requests;
  requests.push_back(std::move(request));
  return ask_all(std::move(requests)).front();
}

std::uint64_t PythonStore::size(const std::string& path, Links /*links*/) {
  if (const auto bytes = ends_.bytes_of(path)) return *bytes;
  return ask(request_for(Wanted::Size, path))->bytes;
}

void PythonStore::read_small(const std::string& path, std::uint64_t offset, std::span<std::byte> out) {
  if (out.empty() || ends_.read(path, offset, out)) return;
  (void)ask(request_for(path, offset, out));
}

void PythonStore::look_ahead(const std::vector<std::string>& paths) {
  RetryBudget budget;
  const RetryBudget::Operation operation(budget);
  std::vector<StoreRequest> requests;
  requests.reserve(paths.size());
  for (const std::string& path : paths) requests.push_back(request_for(Wanted::Size, path));
  std::vector<FileEnds::Ends> found;
  found.reserve(paths.size());
  for (const auto& size : ask_all(std::move(requests))) found.emplace_back(size->bytes);
  requests.clear();
  for (std::size_t i = 0; i < paths.size(); ++i) {
    FileEnds::Ends& ends = found[i];
    if (!ends.head.empty()) requests.push_back(request_for(paths[i], 0, std::as_writable_bytes(std::span(ends.head))));
    if (ends.tail.empty()) continue;
    requests.push_back(request_for(paths[i], ends.tail_begin(), std::as_writable_bytes(std::span(ends.tail))));
  }
  (void)ask_all(std::move(requests));
  for (std::size_t i = 0; i < paths.size(); ++i) ends_.keep(paths[i], std::move(found[i]));
}

void PythonStore::drop_ends() noexcept {
  ends_.drop();
}

bool PythonStore::read_whole(const std::string& path, std::uint64_t most, std::string& text) {
  if (!has_whole_) return false;
  StoreRequest request = request_for(Wanted::Whole, path);
  request.most = most;
  text = std::move(ask(std::move(request))->text);
  return true;
}

std::vector<std::string> PythonStore::list(const std::string& path) {
  return std::move(ask(request_for(Wanted::Names, path))->names);
}

std::uint64_t PythonStore::near_bytes() const {
  return kNearBytes;
}

std::uint64_t PythonStore::most_bytes() const {
  return PythonChannel::kMostBytes;
}

}  // namespace penstock::bindings
