// refusal: the words of an error that must come.
#pragma once

#include "core/base/error.h"

#include <gtest/gtest.h>

#include <string>

namespace penstock::testing {

/// Of the Error that `action` throws, which must be of this kind; "no error" if it throws none.
template <typename Action>
std::string refusal(ErrorKind kind, Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "no error";
}

}  // namespace penstock::testing
