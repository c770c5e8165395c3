#include "bindings/python_channel.h"

#include "core/base/fork_count.h"

#include <algorithm>
#include <utility>

namespace penstock::bindings {
namespace {

std::shared_ptr<StoreRequest> request_for(std::span<Read* const> run) {
  auto request = std::make_shared<StoreRequest>();
  request->file = run.front()->file;
  request->offset = run.front()->offset;
  request->size = run.back()->offset + run.back()->size - request->offset;
  request->reads.assign(run.begin(), run.end());
  request->budget = run.front()->budget;
  return request;
}

}  // namespace

PythonChannel::PythonChannel(std::shared_ptr<PythonCalls> calls)
    : calls_(std::move(calls)), forks_(fork_count()), asker_(std::make_unique<Asker>()) {}

PythonChannel::~PythonChannel() {
  if (forks_ == fork_count()) {
    calls_->leave(*asker_);
  } else {
    static_cast<void>(asker_.release());  // whoever waited for it is in the parent
  }
}

void PythonChannel::submit(std::span<Read* const> reads) {
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

std::size_t PythonChannel::wait(std::span<Read*> done, std::chrono::nanoseconds timeout) {
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

void PythonChannel::wake() {
  calls_->wake(*asker_);
}

}  // namespace penstock::bindings
