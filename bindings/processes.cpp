#include "bindings/processes.h"

#include "core/base/error.h"

#include <fcntl.h>
#include <pybind11/stl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

namespace py = pybind11;

namespace penstock::bindings {
namespace {

std::vector<char*> pointers_of(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// From 3 on, so that a child does not have them: one call that takes no descriptor, from Linux 5.11 on.
bool close_at_exec(unsigned first, unsigned last) {
  constexpr long kCloseRange = 436;  // SYS_close_range, CLOSE_RANGE_CLOEXEC: glibc 2.28 does not name them
  constexpr unsigned kAtExec = 4;
  return ::syscall(kCloseRange, first, last, kAtExec) == 0;
}

// On older kernels, the descriptors from 3 on.
std::vector<int> open_descriptors(const std::string& path) {
  constexpr unsigned kNone = ~0U;
  std::vector<int> found;
  if (close_at_exec(kNone, kNone)) return found;
  std::error_code error;
  std::filesystem::directory_iterator entry("/proc/self/fd", error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const int fd = std::stoi(entry->path().filename().string());
    if (fd > 2) found.push_back(fd);
  }
  if (error) raise_system(error.value(), "start", path);
  return found;
}

// As multiprocessing.util.spawnv_passfds, but that the kernel kills the child when the thread that calls this ends:
// from its first instruction on, whatever it does.
int spawn_bound(const std::string& path, std::vector<std::string> arguments, const std::vector<int>& kept) {
  const std::vector<char*> pointers = pointers_of(arguments);
  const std::vector<int> open = open_descriptors(path);
  const pid_t parent = ::getpid();
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);  // a handler must not run in the child, which shares this memory
  volatile int error = 0;
  const pid_t child = ::vfork();  // NOLINT(clang-analyzer-security.insecureAPI.vfork) - system calls alone, then exec
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);  // it had ended before
    close_at_exec(3, ~0U);
    for (const int fd : open) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
    for (const int fd : kept) ::fcntl(fd, F_SETFD, 0);
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    ::execv(path.c_str(), pointers.data());
    error = errno;
    ::_exit(1);
  }
  const int not_made = child < 0 ? errno : error;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (not_made != 0) raise_system(not_made, "start", path);
  return child;
}

}  // namespace

void register_processes(py::module_& module) {
  module.def("spawn_bound", &spawn_bound, py::arg("path"), py::arg("arguments"), py::arg("fds"),
             "Starts a process that has these descriptors and is killed when the calling thread ends; its id.");
}

}  // namespace penstock::bindings
