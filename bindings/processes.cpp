#include "bindings/processes.h"

#include "core/base/error.h"

#include <fcntl.h>
#include <pybind11/stl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
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

// Descriptors from 3 on that a child is not to have.
std::vector<int> others_than(const std::vector<int>& kept) {
  std::vector<int> others;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int fd = std::stoi(entry.path().filename().string());
    if (fd > 2 && std::find(kept.begin(), kept.end(), fd) == kept.end()) others.push_back(fd);
  }
  return others;
}

// As multiprocessing.util.spawnv_passfds, but that the kernel kills the child when the thread that calls this ends:
// from its first instruction on, whatever it does.
int spawn_bound(const std::string& path, std::vector<std::string> arguments, const std::vector<int>& kept) {
  const std::vector<char*> pointers = pointers_of(arguments);
  const std::vector<int> others = others_than(kept);
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
    for (const int fd : others) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
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
