// RequestHeaders: the headers of a transfer's requests, as the list that libcurl reads.
//
// libcurl formats what it makes itself (User-Agent, Range) twice for each request, letter by letter, which is the most
// expensive thing that a small range needs of it; what it is given ready it copies once. Of one transfer.
#pragma once

#include "core/io/http/curl.h"

#include <cstdint>

#include <string>
#include <vector>

namespace penstock {

class RequestHeaders {
 public:
  RequestHeaders() = default;
  RequestHeaders(const RequestHeaders&) = delete;
  RequestHeaders& operator=(const RequestHeaders&) = delete;

  /// Once: those of every request, "Name: value"; they go before what is sent otherwise.
  void set_fixed(const std::vector<std::string>& own);
  /// For a request without a range. Valid until the next call, as is the list of range().
  curl_slist* whole() noexcept;
  /// For the bytes from `begin` up to `end`.
  curl_slist* range(std::uint64_t begin, std::uint64_t end);

 private:
  std::vector<std::string> lines_;  // the last one is the range
  std::vector<curl_slist> nodes_;   // one a line
};

}  // namespace penstock
