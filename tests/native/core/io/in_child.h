// in_child: what is done to a process for good (limits, signals, a fork's own promises) is done to a child.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <exception>

namespace penstock::testing {

/// Whether `is_right` says so in a forked child, within a minute.
template <typename Call>
bool in_child(Call&& is_right) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);  // a wait without end ends the child by a signal
    try {
      ::_exit(is_right() ? 0 : 1);
    } catch (const std::exception&) {
      ::_exit(2);
    }
  }
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return status == 0;
}

}  // namespace penstock::testing
