// Judges an attempt of a Transfer, and decides what comes next.
#include "core/base/error.h"
#include "core/io/back_off.h"
#include "core/io/http/address.h"
#include "core/io/http/transfer.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace penstock {
namespace {

using std::chrono::milliseconds;

constexpr std::uint32_t kMostRedirects = 5;
constexpr long kFinalStatus = 200;
constexpr std::size_t kLeastSecret = 6;  // letters of a header's value that would be looked for in messages

std::string userinfo_of(std::string_view address) {
  const std::size_t host = address.find("://") + 3;
  const std::string_view authority = address.substr(host, address.find_first_of("/?#", host) - host);
  const std::size_t at = authority.rfind('@');
  return std::string(at == std::string_view::npos ? std::string_view() : authority.substr(0, at));
}

// A wrong address, or a machine without a network. A server that resets is there.
bool reaches_nobody(CURLcode code) {
  return code == CURLE_COULDNT_RESOLVE_HOST || code == CURLE_COULDNT_RESOLVE_PROXY || code == CURLE_COULDNT_CONNECT ||
         code == CURLE_SSL_CONNECT_ERROR;
}

// libcurl does not tell why it has no socket: words where this process has no descriptor left, else none.
std::string without_descriptors() {
  const int tried = ::open("/", O_PATH | O_CLOEXEC);
  if (tried < 0) return errno == EMFILE || errno == ENFILE ? fmt::format(": {}", std::strerror(errno)) : "";
  ::close(tried);
  return "";
}

}  // namespace

std::string Transfer::name() const {
  std::string text = shown_address(request_.path);
  if (request_.whole == nullptr) {
    text += fmt::format(", bytes {} to {}", with_commas(request_.begin), with_commas(request_.end));
  }
  return text;
}

// A server may repeat our secrets in an ETag, a code of an error or the address of a redirect.
std::string Transfer::without_secrets(std::string text) const {
  for (const std::string& header : shared_.options.headers) {
    std::string_view value = std::string_view(header).substr(header.find(':') + 1);
    value.remove_prefix(std::min(value.find_first_not_of(' '), value.size()));
    for (const std::string_view each : {value, value.substr(value.rfind(' ') + 1)}) {  // behind "Bearer"
      if (each.size() >= kLeastSecret) text = without(std::move(text), each);
    }
  }
  return shared_.addresses->are_secret() ? without_secrets_of(std::move(text), address_) : text;
}

Transfer::Next Transfer::refuse(ErrorKind kind, const std::string& what) {
  error_ = std::make_exception_ptr(Error(kind, fmt::format("{}: {}", name(), without_secrets(what))));
  return Next::Failed;
}

Transfer::Next Transfer::again(const std::string& reason, Clock::time_point now) {
  milliseconds pause = back_off(attempts_);
  if (reply_.retry_after) pause = std::max<milliseconds>(pause, *reply_.retry_after);
  due_ = now + pause;
  if (due_ < deadline_ && !is_budget_spent()) return Next::Again;
  const Next next =
      refuse(ErrorKind::IoError, fmt::format("{}: {}", given_up(shared_.options.deadline, attempts_), reason));
  if (budget_ != nullptr) budget_->give_up(error_);
  return next;
}

// libcurl's own words, without the address that they may hold.
Judgement Transfer::judge_code(CURLcode code) const {
  std::string reason = curl_.easy_strerror(code);
  switch (code) {
    case CURLE_PEER_FAILED_VERIFICATION: {
      const std::string why = excerpt(words_.data());  // of the certificate alone
      const bool is_old = why.find("expired") != std::string::npos;
      return {Worth::Unwanted,
              fmt::format("{}: {}. {}", reason, why,
                          is_old ? "The server needs a new one"
                                 : "Storage(ca_file=…) names the certificates of an authority of your own")};
    }
    case CURLE_SSL_CACERT_BADFILE: {
      const std::string& file = shared_.options.ca_file;
      return {Worth::Unwanted, reason + (file.empty() ? ". Storage(ca_file=…) names another file" : ": " + file)};
    }
    case CURLE_UNSUPPORTED_PROTOCOL:
      if (std::string_view(words_.data()).starts_with("Protocol ")) return {Worth::Unwanted, reason};  // without TLS
      return {Worth::Again, "what came is no reply of HTTP"};
    case CURLE_URL_MALFORMAT:
    case CURLE_BAD_FUNCTION_ARGUMENT:
    case CURLE_UNKNOWN_OPTION:
    case CURLE_NOT_BUILT_IN: return {Worth::Unwanted, reason};
    case CURLE_OPERATION_TIMEDOUT:
      if (is_endless()) return {Worth::Again, fmt::format("{} bytes had come, and no end", with_commas(got_))};
      return {Worth::Again, fmt::format("{} bytes had come when it stalled", with_commas(got_))};
    case CURLE_COULDNT_CONNECT:
    case CURLE_COULDNT_RESOLVE_HOST: return {Worth::Again, reason + without_descriptors()};
    default: return {Worth::Again, reason};
  }
}

Transfer::Next Transfer::follow() {
  if (++redirects_ > kMostRedirects) return refuse(ErrorKind::IoError, "more than 5 redirects");
  const char* location = nullptr;  // what the reply says, as an address of its own
  (void)curl_.easy_getinfo(handle_, CURLINFO_REDIRECT_URL, &location);
  std::string target = location != nullptr ? location : "";
  const std::string userinfo = userinfo_of(address_);
  const std::string shown = shown_address(target);
  const auto is_http = [](std::string_view address) { return address.starts_with("http://"); };
  if (!is_http(target) && !target.starts_with("https://")) {
    return refuse(ErrorKind::IoError, "it is redirected to what is no address of HTTP: " + excerpt(shown));
  }
  if (is_http(target) && !is_http(address_)) {
    return refuse(ErrorKind::IoError, "it is redirected from https to http, which is not followed: " + excerpt(shown));
  }
  const bool has_secrets = shared_.addresses->are_secret() || !shared_.options.headers.empty();
  if (has_secrets && origin_of(shown) != origin_of(shown_address(address_))) {
    return refuse(ErrorKind::IoError,
                  fmt::format("it is redirected to another server, {}, which may not see the headers or the signature "
                              "that would go along: open that address itself",
                              excerpt(shown)));
  }
  address_ = std::move(target);
  // Only on the same server, as was looked at: a location does not repeat the password.
  if (!userinfo.empty() && userinfo_of(address_).empty()) {
    address_.insert(address_.find("://") + 3, userinfo + "@");
  }
  return Next::AtOnce;
}

// True if another address is worth an attempt: once.
bool Transfer::renew() {
  if (renewals_++ > 0 || !shared_.addresses->renew(request_.path)) return false;
  address_.clear();
  return true;
}

// Judges what the attempt brought, once it has ended.
void Transfer::judge_attempt(CURLcode code) {
  is_unreachable_ = reaches_nobody(code);
  if (reply_.status > 0) {
    judge_once();
    shared_.has_answered.store(true, std::memory_order_relaxed);
  }
  if (const std::string_view error = error_code(told_); !error.empty()) {
    judgement_.reason += fmt::format(", {}", error);
  }
  const bool is_short = request_.may_be_short && reply_.range;
  const std::uint64_t wanted = (is_short ? reply_.range->end : request_.end) - request_.begin;
  const bool is_begun = reply_.status >= kFinalStatus;  // those before it announce a reply
  if (code != CURLE_OK && (!is_begun || judgement_.worth == Worth::Good)) {
    judgement_ = judge_code(code);
  } else if (is_begun && !reply_.is_whole) {  // for libcurl a reply without a body
    judgement_ = {Worth::Again, "the connection ended in the header of a reply"};
  } else if (judgement_.worth == Worth::Good && request_.whole == nullptr && got_ != wanted) {
    judgement_ = {Worth::Again, fmt::format("{} of {} bytes came", with_commas(got_), with_commas(wanted))};
  }
  if (judgement_.worth == Worth::Good && shared_.options.check_etag && request_.file != nullptr && etag_.empty()) {
    etag_ = shared_.keep_etag(*request_.file, reply_.etag);
    if (etag_ != reply_.etag) judgement_ = other_version(etag_, reply_.etag);
  }
}

Transfer::Next Transfer::end_attempt(CURLcode code, Clock::time_point now) {
  if (error_) return Next::Failed;
  judge_attempt(code);
  switch (judgement_.worth) {
    case Worth::Good:
      shared_.flights.was_good();
      if (budget_ != nullptr) budget_->answered(began_, attempts_ > 1, now);
      if (request_.whole == nullptr) shared_.has_given_range.store(true, std::memory_order_relaxed);
      return Next::Done;
    case Worth::Elsewhere: return follow();
    case Worth::Refused: {
      if (renew()) return Next::AtOnce;
      return refuse(ErrorKind::IoError,
                    fmt::format("{}: it was asked for {}", judgement_.reason, shared_.addresses->credentials()));
    }
    case Worth::Missing:
      return refuse(ErrorKind::NotFound,
                    fmt::format("there is no such {} ({})", error_code(told_) == "NoSuchBucket" ? "bucket" : "file",
                                judgement_.reason));
    case Worth::Changed: return refuse(ErrorKind::Corruption, judgement_.reason);
    case Worth::Unwanted:
      // Amazon answers 400 where a token has ended.
      if (reply_.status == 400 && reply_.region.empty() && renew()) return Next::AtOnce;
      return refuse(ErrorKind::IoError, judgement_.reason);
    case Worth::NoRanges:
      if (attempts_ >= kFirstAttempts && !shared_.has_given_range.load(std::memory_order_relaxed)) {
        return refuse(ErrorKind::IoError,
                      judgement_.reason +
                          ": this server knows no ranges (RFC 9110, 14), without which nothing is read "
                          "at random. nginx, Apache and object stores do");
      }
      return again(judgement_.reason, now);
    case Worth::Again: break;
  }
  if (reply_.status == 429 || reply_.status == 503) shared_.flights.was_busy(halvings_then_);
  if (is_unreachable_ && attempts_ >= kFirstAttempts && !shared_.has_answered.load(std::memory_order_relaxed)) {
    return refuse(ErrorKind::IoError, fmt::format("no connection in {} attempts: {}", attempts_, judgement_.reason));
  }
  return again(judgement_.reason, now);
}

}  // namespace penstock
