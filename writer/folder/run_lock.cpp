#include "writer/folder/run_lock.h"

#include "core/base/error.h"
#include "layout/dataset/format.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <span>
#include <thread>
#include <utility>

namespace penstock::writer {
namespace {

using layout::kRunLockName;

constexpr std::size_t kMostRunBytes = 64;
// A writer holds the lock alone for a moment when it begins or ends.
constexpr auto kPatience = std::chrono::seconds(2);
constexpr auto kPause = std::chrono::milliseconds(5);

enum class Lock { Had, Held, NotSupported };

// Had, held by others, or not to be had on this file system. Throws IoError.
Lock flock_now(int fd, int how, const std::string& path) {
  int result = 0;
  do {
    result = ::flock(fd, how | LOCK_NB);
  } while (result != 0 && errno == EINTR);
  if (result == 0) return Lock::Had;
  if (errno == EWOULDBLOCK) return Lock::Held;
  if (errno == ENOLCK || errno == EOPNOTSUPP || errno == ENOSYS || errno == EINVAL) return Lock::NotSupported;
  raise_system(errno, "lock", path);
}

}  // namespace

std::string unique_run() {
  const std::string suffix = unique_suffix();
  return suffix.substr(suffix.find('-') + 1);
}

void check_run(std::string_view run) {
  const auto is_allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
           c == '-';
  };
  if (run.size() <= kMostRunBytes && std::all_of(run.begin(), run.end(), is_allowed)) return;
  raise(ErrorKind::InvalidArgument,
        "run {:.80}: a run's name has at most {} letters, digits, dots, underscores and hyphens", run, kMostRunBytes);
}

RunLock::RunLock(int fd, std::string path, std::string run)
    : folder_(fd), path_(std::move(path)), run_(std::move(run)), owner_(::getpid()) {
  check_run(run_);
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (!try_to_hold()) {
    file_.reset();
    if (std::chrono::steady_clock::now() > deadline) {
      raise(ErrorKind::InvalidArgument, "{}: another writer is at work in this folder; wait until it has ended", path_);
    }
    std::this_thread::sleep_for(kPause);
  }
}

// False: again. Without locks there is nothing to hold.
bool RunLock::try_to_hold() {
  file_ = Descriptor(::openat(folder_, kRunLockName, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666));
  if (file_.get() < 0) raise_system(errno, "open", shown());
  Lock alone = Lock::NotSupported;
  Lock shared = Lock::Held;
  try {
    alone = flock_now(file_.get(), LOCK_EX, shown());
    if (alone == Lock::Had && is_still_there()) name_run();
    // A lock that is changed is given back first: another run may take it in between.
    if (alone != Lock::NotSupported) shared = flock_now(file_.get(), LOCK_SH, shown());
  } catch (...) {
    if (alone != Lock::Held) remove_file();  // nobody else holds it
    throw;
  }
  if (alone == Lock::NotSupported) {
    remove_file();
    file_.reset();
    return true;
  }
  if (shared != Lock::Had || !is_still_there()) return false;
  refuse_other();
  return true;
}

void RunLock::name_run() const {
  if (::ftruncate(file_.get(), 0) != 0) raise_system(errno, "truncate", shown());
  write_all(file_.get(), std::as_bytes(std::span(run_)), 0, shown());
}

std::string RunLock::shown() const {
  return path_ + "/" + kRunLockName;
}

// Whether the file has its name, or was removed by who held it before. Throws IoError: whether it has is not known.
bool RunLock::is_still_there() const {
  struct stat held {};
  struct stat named {};
  if (::fstat(file_.get(), &held) != 0) raise_system(errno, "look at", shown());
  if (::fstatat(folder_, kRunLockName, &named, AT_SYMLINK_NOFOLLOW) != 0) {
    if (errno == ENOENT) return false;
    raise_system(errno, "look at", shown());
  }
  return held.st_ino == named.st_ino && held.st_dev == named.st_dev;
}

std::string RunLock::holder() const {
  std::array<char, kMostRunBytes> text{};
  ssize_t bytes = 0;
  do {
    bytes = ::pread(file_.get(), text.data(), text.size(), 0);
  } while (bytes < 0 && errno == EINTR);
  if (bytes < 0) raise_system(errno, "read", shown());
  return {text.data(), static_cast<std::size_t>(bytes)};
}

void RunLock::refuse_other() const {
  const std::string other = holder();
  if (other == run_) return;
  raise(ErrorKind::InvalidArgument,
        "{}: another writer is at work in this folder{}; wait until it has ended, or work with it by its run's name",
        path_, other.empty() ? "" : fmt::format(", run {}", other));
}

void RunLock::remove_file() noexcept {
  try {
    if (file_.get() >= 0 && is_still_there()) ::unlinkat(folder_, kRunLockName, 0);
  } catch (const std::exception&) {  // it stays, as after a kill: the next run takes it over
  }
}

RunLock::~RunLock() {
  if (file_.get() < 0 || owner_ != ::getpid()) return;
  // The last one leaves nothing behind.
  if (::flock(file_.get(), LOCK_EX | LOCK_NB) == 0) remove_file();
  ::flock(file_.get(), LOCK_UN);  // by hand: a child forked meanwhile shares the lock and would keep it
}

}  // namespace penstock::writer
