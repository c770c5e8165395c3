#include "core/io/http/signed_addresses.h"

#include <algorithm>
#include <iterator>

namespace penstock {
namespace {

constexpr std::chrono::seconds kErrorHolds{1};

void call_all(const std::vector<std::function<void()>>& waiting) {
  for (const auto& each : waiting) each();
}

}  // namespace

std::shared_ptr<SignedAddresses> SignedAddresses::make(std::string credentials) {
  // A child after a fork has no thread that signs, and cannot destroy what it waits for.
  return {new SignedAddresses(std::move(credentials)), [](SignedAddresses* addresses) {
            if (addresses->forks_ == fork_count()) delete addresses;
          }};
}

void SignedAddresses::ask(const std::string& path, Entry& entry) {
  if (entry.is_asked) return;
  queue_.push_back(path);
  entry.is_asked = true;
  asked_.notify_one();
}

std::optional<std::string> SignedAddresses::of(const std::string& path, const std::function<void()>& later) {
  const std::lock_guard lock(mutex_);
  Entry& entry = entries_[path];
  const Clock::time_point now = Clock::now();
  if (entry.error && now < entry.ends_at) throw Error(*entry.error);
  entry.error.reset();
  if (stopped_) raise(ErrorKind::IoError, "{}: its addresses are not signed any more: open it again", path);
  if (entry.address.empty() || now >= entry.ends_at) {
    entry.waiting.push_back(later);
    ask(path, entry);
    return std::nullopt;
  }
  if (now >= entry.renew_at) ask(path, entry);
  return entry.address;
}

bool SignedAddresses::renew(const std::string& path) {
  const std::lock_guard lock(mutex_);
  entries_[path].address.clear();
  return true;
}

std::vector<std::string> SignedAddresses::list(const std::string& path) {
  raise(ErrorKind::InvalidArgument, "{}: its folders are not listed: name a dataset's folder, or each file", path);
}

std::vector<std::string> SignedAddresses::take(std::size_t most, std::chrono::nanoseconds patience) {
  std::unique_lock lock(mutex_);
  asked_.wait_for(lock, patience, [&] { return stopped_ || !queue_.empty(); });
  const auto count = static_cast<std::ptrdiff_t>(stopped_ ? 0 : std::min(most, queue_.size()));
  std::vector<std::string> taken(std::make_move_iterator(queue_.begin()),
                                 std::make_move_iterator(queue_.begin() + count));
  queue_.erase(queue_.begin(), queue_.begin() + count);
  return taken;
}

void SignedAddresses::give(const std::vector<std::pair<std::string, std::string>>& addresses,
                           std::chrono::nanoseconds lifetime) {
  std::vector<std::function<void()>> waiting;
  {
    const std::lock_guard lock(mutex_);
    const Clock::time_point now = Clock::now();
    for (const auto& [path, address] : addresses) {
      Entry& entry = entries_[path];
      entry.address = address;
      entry.renew_at = now + lifetime / 2;
      entry.ends_at = now + lifetime;
      entry.error.reset();
      entry.is_asked = false;
      std::move(entry.waiting.begin(), entry.waiting.end(), std::back_inserter(waiting));
      entry.waiting.clear();
    }
  }
  call_all(waiting);
}

void SignedAddresses::refuse(const std::vector<std::string>& paths, const Error& error) {
  std::vector<std::function<void()>> waiting;
  {
    const std::lock_guard lock(mutex_);
    for (const std::string& path : paths) {
      Entry& entry = entries_[path];
      entry.is_asked = false;
      if (entry.address.empty() || Clock::now() >= entry.ends_at) {  // else the old one is still good
        entry.address.clear();
        entry.error = error;
        entry.ends_at = Clock::now() + kErrorHolds;
      }
      std::move(entry.waiting.begin(), entry.waiting.end(), std::back_inserter(waiting));
      entry.waiting.clear();
    }
  }
  call_all(waiting);
}

void SignedAddresses::stop() {
  if (forks_ != fork_count()) return;
  std::vector<std::function<void()>> waiting;
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    for (auto& [path, entry] : entries_) {
      std::move(entry.waiting.begin(), entry.waiting.end(), std::back_inserter(waiting));
      entry.waiting.clear();
    }
  }
  asked_.notify_all();
  call_all(waiting);
}

bool SignedAddresses::is_stopped() const {
  const std::lock_guard lock(mutex_);
  return stopped_;
}

}  // namespace penstock
