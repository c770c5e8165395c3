// message_of: the words of an error that must come.
#pragma once

#include "core/base/error.h"

#include <gtest/gtest.h>

#include <string>

namespace penstock::testing {

/// What the error of `call` says, which must be of this kind.
template <typename Call>
std::string message_of(Call&& call, ErrorKind kind) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

/// The error of `call` has this kind, and says so.
template <typename Call>
void expect_error(Call&& call, ErrorKind kind, const std::string& words) {
  const std::string said = message_of(call, kind);
  EXPECT_NE(said.find(words), std::string::npos) << said << "\nexpected: " << words;
}

}  // namespace penstock::testing
