#include "bindings/python_store.h"

#include "bindings/gil.h"
#include "core/base/fork_count.h"
#include "core/io/read_queue.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

namespace penstock::bindings {
namespace {

// As over HTTP, where they were measured (core/io/http/http_store.cpp).
constexpr std::uint64_t kNearBytes = 64 << 10;
constexpr std::uint64_t kMostBytes = 8 << 20;

constexpr std::chrono::milliseconds kSignalPeriod{50};

std::shared_ptr<StoreRequest> request_for(std::span<Read* const> run) {
  auto request = std::make_shared<StoreRequest>();
  request->file = run.front()->file;
  request->offset = run.front()->offset;
  request->size = run.back()->offset + run.back()->size - request->offset;
  request->reads.assign(run.begin(), run.end());
  return request;
}

class PythonChannel final : public Channel {
 public:
  explicit PythonChannel(std::shared_ptr<PythonCalls> calls)
      : calls_(std::move(calls)), forks_(fork_count()), asker_(std::make_unique<Asker>()) {}

  ~PythonChannel() override {
    if (forks_ == fork_count()) {
      calls_->leave(*asker_);
    } else {
      static_cast<void>(asker_.release());  // whoever waited for it is in the parent
    }
  }
  PythonChannel(const PythonChannel&) = delete;
  PythonChannel& operator=(const PythonChannel&) = delete;

  void submit(std::span<Read* const> reads) override {
    StoreRequests requests;
    ReadQueue rest;
    rest.push(reads);
    while (!rest.empty()) {
      const std::span<Read* const> run = rest.front_run(kMostBytes);
      requests.push_back(request_for(run));
      rest.pop(run.size());
    }
    under_way_ += reads.size();
    ended_.reserve(under_way_);  // handing out cannot fail
    try {
      if (!requests.empty()) calls_->push(*asker_, std::move(requests));
    } catch (...) {
      under_way_ -= reads.size();
      throw;
    }
  }

  std::size_t wait(std::span<Read*> done, std::chrono::nanoseconds timeout) override {
    if (ended_.empty()) {
      calls_->collect(*asker_, collected_, timeout);
      for (const auto& request : collected_) {
        for (Read* const read : request->reads) {
          read->retries += request->attempts > 0 ? request->attempts - 1 : 0;
          if (request->error) read->fail(request->error);
        }
        ended_.push(request->reads);
      }
      collected_.clear();
    }
    const std::size_t count = std::min(done.size(), ended_.size());
    std::copy_n(ended_.front().begin(), count, done.begin());
    ended_.pop(count);
    under_way_ -= count;
    return count;
  }

  void wake() override { calls_->wake(*asker_); }

 private:
  const std::shared_ptr<PythonCalls> calls_;
  const std::uint64_t forks_;
  std::unique_ptr<Asker> asker_;
  StoreRequests collected_;
  ReadQueue ended_;  // not handed out
  std::size_t under_way_ = 0;
};

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

std::shared_ptr<StoreRequest> PythonStore::ask(StoreRequest request) {
  refuse_child();
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
  StoreRequests ended{std::make_shared<StoreRequest>(std::move(request))};
  calls_->push(waits.asker, std::move(ended));
  for (ended.clear(); ended.empty();) {
    calls_->collect(waits.asker, ended, kSignalPeriod);
    if (ended.empty() && while_waiting_) while_waiting_();
  }
  if (ended.front()->error) std::rethrow_exception(ended.front()->error);
  return ended.front();
}

std::uint64_t PythonStore::size(const std::string& path, Links /*links*/) {
  StoreRequest request;
  request.wanted = Wanted::Size;
  request.path = path;
  return ask(std::move(request))->bytes;
}

void PythonStore::read_small(const std::string& path, std::uint64_t offset, std::span<std::byte> out) {
  if (out.empty()) return;
  StoreRequest request;
  request.path = path;
  request.offset = offset;
  request.size = out.size();
  request.into = out;
  (void)ask(std::move(request));
}

bool PythonStore::read_whole(const std::string& path, std::uint64_t most, std::string& text) {
  if (!has_whole_) return false;
  StoreRequest request;
  request.wanted = Wanted::Whole;
  request.path = path;
  request.most = most;
  text = std::move(ask(std::move(request))->text);
  return true;
}

std::vector<std::string> PythonStore::list(const std::string& path) {
  StoreRequest request;
  request.wanted = Wanted::Names;
  request.path = path;
  return std::move(ask(std::move(request))->names);
}

std::uint64_t PythonStore::near_bytes() const {
  return kNearBytes;
}

std::uint64_t PythonStore::most_bytes() const {
  return kMostBytes;
}

}  // namespace penstock::bindings
