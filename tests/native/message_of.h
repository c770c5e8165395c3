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

}  // namespace penstock::testing
