#include "core/io/http/transfer.h"

#include "core/base/error.h"
#include "core/io/back_off.h"
#include "core/io/http/address.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <utility>

namespace penstock {
namespace {

using std::chrono::milliseconds;

constexpr long kBufferBytes = 64 << 10;
constexpr std::uint64_t kSlowBytes = 1024;  // a second, for so long: a stall
constexpr std::chrono::seconds kStall{5};
constexpr std::chrono::seconds kLateStall{1};      // … once the deadline is over
constexpr std::uint64_t kMostUnwanted = 64 << 10;  // of a reply's body: more is not worth a kept connection
constexpr std::size_t kMostTold = 1 << 10;         // of a page that says what was wrong
constexpr std::uint32_t kMostRedirects = 5;
constexpr long kFinalStatus = 200;
constexpr auto kQuickExit = static_cast<CURLoption>(322);  // CURLOPT_QUICK_EXIT, from 7.87 on
constexpr std::size_t kLeastSecret = 6;  // letters of a header's value that would be looked for in messages

std::string userinfo_of(std::string_view address) {
  const std::size_t host = address.find("://") + 3;
  const std::string_view authority = address.substr(host, address.find_first_of("/?#", host) - host);
  const std::size_t at = authority.rfind('@');
  return std::string(at == std::string_view::npos ? std::string_view() : authority.substr(0, at));
}

// What an address has that is wrong, or a machine without a network. A server that resets is there.
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

// libcurl looks for it in the environment at each request.
bool has_proxy() {
  constexpr std::array kNames{"http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"};
  return std::any_of(kNames.begin(), kNames.end(), [](const char* name) { return std::getenv(name) != nullptr; });
}

template <typename Value>
void set(const Curl& curl, CURL* handle, CURLoption option, Value value) {
  const CURLcode code = curl.easy_setopt(handle, option, value);
  if (code == CURLE_OK) return;
  if (code == CURLE_OUT_OF_MEMORY) throw std::bad_alloc();
  raise(ErrorKind::IoError, "libcurl refuses option {}: {}", static_cast<int>(option), curl.easy_strerror(code));
}

}  // namespace

Transfer::Transfer(const Curl& curl, HttpShared& shared) : curl_(curl), shared_(shared), handle_(curl.easy_init()) {
  if (handle_ == nullptr) throw std::bad_alloc();
  try {
    headers_.set_fixed(shared.options.headers);
    set(curl_, handle_, CURLOPT_NOSIGNAL, 1L);
    set(curl_, handle_, CURLOPT_PATH_AS_IS, 1L);
    set(curl_, handle_, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
    set(curl_, handle_, CURLOPT_BUFFERSIZE, kBufferBytes);
    set(curl_, handle_, CURLOPT_TCP_KEEPALIVE, 1L);
    if (!has_proxy()) set(curl_, handle_, CURLOPT_PROXY, "");
    set(curl_, handle_, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);  // a proxy's answer is no reply
    if (!shared.options.ca_file.empty()) set(curl_, handle_, CURLOPT_CAINFO, shared.options.ca_file.c_str());
    set(curl_, handle_, CURLOPT_HEADERFUNCTION, &Transfer::on_header);
    set(curl_, handle_, CURLOPT_HEADERDATA, static_cast<void*>(this));
    set(curl_, handle_, CURLOPT_WRITEFUNCTION, &Transfer::on_body);
    set(curl_, handle_, CURLOPT_WRITEDATA, static_cast<void*>(this));
    set(curl_, handle_, CURLOPT_PRIVATE, static_cast<void*>(this));
    set(curl_, handle_, CURLOPT_ERRORBUFFER, words_.data());
    // Else a request that is given up waits for the system's resolver, some 30 s where no DNS server answers.
    (void)curl_.easy_setopt(handle_, kQuickExit, 1L);
  } catch (...) {
    curl_.easy_cleanup(handle_);
    throw;
  }
}

Transfer::~Transfer() {
  curl_.easy_cleanup(handle_);
  if (parsed_ != nullptr) curl_.url_cleanup(parsed_);
}

void Transfer::take(Request request) {
  request_ = std::move(request);
  address_.clear();
  budget_ = RetryBudget::present();
  begin();
}

void Transfer::take(std::span<Read* const> run) {
  const Read& first = *run.front();
  const Read& last = *run.back();
  Request request;
  request.path = first.file->path();
  request.reads = std::move(request_.reads);  // its memory
  request.reads.assign(run.begin(), run.end());
  request.file = first.file;
  request.begin = first.offset;
  request.end = last.offset + last.size;
  request.file_bytes = first.file->bytes;
  const bool is_known = shared_.addresses->are_fixed() && redirects_ == 0 && request.path == request_.path;
  if (!is_known) address_.clear();
  request_ = std::move(request);
  budget_ = first.budget;
  begin();
}

void Transfer::begin() {
  etag_.clear();
  if (shared_.options.check_etag) {
    if (request_.file != nullptr) etag_ = shared_.etag_of(*request_.file);
    if (request_.is_same_file) etag_ = shared_.etag_of(request_.path);
  }
  attempts_ = redirects_ = renewals_ = 0;
  began_ = deadline_ = due_ = {};
  error_ = nullptr;
}

bool Transfer::find_address(const std::function<void()>& later, Clock::time_point now) {
  if (budget_ != nullptr) {
    if (const std::exception_ptr failure = budget_->failure()) std::rethrow_exception(failure);
  }
  if (began_ == Clock::time_point()) {
    began_ = now;
    deadline_ = now + (budget_ != nullptr ? budget_->left(shared_.options.deadline) : shared_.options.deadline);
  }
  if (!address_.empty()) return true;
  std::optional<std::string> found = shared_.addresses->of(request_.path, later);
  if (found) {
    address_ = std::move(*found);
  } else if (now >= deadline_) {
    const double seconds = std::chrono::duration<double>(shared_.options.deadline).count();
    const std::string why = fmt::format("{}: it was to be asked for {}, which gave no signature in {:g} s", name(),
                                        shared_.addresses->credentials(), seconds);
    if (budget_ != nullptr) budget_->give_up(std::make_exception_ptr(Error(ErrorKind::IoError, why)));
    throw Error(ErrorKind::IoError, why);
  }
  return found.has_value();
}

// Parsed here, once for all requests of a file: libcurl parses text at each request.
void Transfer::set_url() {
  url_.clear();
  if (curl_.url != nullptr && parsed_ == nullptr) parsed_ = curl_.url();
  const bool is_parsed = parsed_ != nullptr && curl_.url_set(parsed_, CURLUPART_URL, address_.c_str(),
                                                             CURLU_PATH_AS_IS | CURLU_NON_SUPPORT_SCHEME) == CURLUE_OK;
  // Without a parsed one libcurl says what is wrong with the text.
  set(curl_, handle_, CURLOPT_URL, is_parsed ? nullptr : address_.c_str());
  if (curl_.url != nullptr) set(curl_, handle_, CURLOPT_CURLU, is_parsed ? parsed_ : nullptr);
  url_ = address_;
}

void Transfer::begin_attempt(Clock::time_point now) {
  ++attempts_;
  reply_ = {};
  judgement_ = {};
  is_judged_ = false;
  told_.clear();
  got_ = piece_got_ = 0;
  piece_ = 0;
  if (request_.whole != nullptr) request_.whole->clear();
  halvings_then_ = shared_.flights.halvings();
  looked_at_ = was_fast_at_ = now;
  got_then_ = 0;
  if (url_ != address_) set_url();
  const bool is_whole = request_.whole != nullptr;
  set(curl_, handle_, CURLOPT_HTTPHEADER, is_whole ? headers_.whole() : headers_.range(request_.begin, request_.end));
}

bool Transfer::is_stalled(Clock::time_point now) noexcept {
  const std::chrono::duration<double> since = now - looked_at_;
  if (static_cast<double>(got_ - got_then_) >= static_cast<double>(kSlowBytes) * since.count()) was_fast_at_ = now;
  looked_at_ = now;
  got_then_ = got_;
  if (budget_ != nullptr && budget_->failure()) return true;
  if (is_endless() && now >= deadline_) return true;
  return now - was_fast_at_ >= (now < deadline_ ? kStall : kLateStall);
}

// No exception passes through libcurl: it is the request's error, and 0 ends the attempt.
template <typename Take>
std::size_t Transfer::guarded(const Take& take) noexcept {
  try {
    return take(*this);
  } catch (...) {
    error_ = present_error();
    return 0;
  }
}

std::size_t Transfer::on_header(char* data, std::size_t size, std::size_t count, void* self) {
  return static_cast<Transfer*>(self)->guarded([&](Transfer& transfer) {
    transfer.reply_.add({data, size * count});
    return size * count;
  });
}

std::size_t Transfer::on_body(char* data, std::size_t size, std::size_t count, void* self) {
  return static_cast<Transfer*>(self)->guarded([&](Transfer& transfer) {
    return transfer.take_body({data, size * count});
  });
}

Judgement Transfer::judge_whole() const {
  if (reply_.status != 200) {
    Judgement judgement = judge(reply_, Wanted{});
    if (judgement.worth == Worth::Good || judgement.worth == Worth::NoRanges) judgement.worth = Worth::Again;
    return judgement;
  }
  if (!reply_.encoding.empty() && reply_.encoding != "identity") {
    return {Worth::Again, "the content is encoded, which was not asked for"};
  }
  if (reply_.length && *reply_.length > request_.most) {
    return {Worth::Unwanted, fmt::format("the file has {} bytes, and one of at most {} was expected",
                                         with_commas(*reply_.length), with_commas(request_.most))};
  }
  return {};
}

void Transfer::judge_once() {
  if (is_judged_) return;
  is_judged_ = true;
  is_empty_ = request_.may_be_short && request_.begin == 0 && has_no_bytes(reply_);
  if (is_empty_) {
    reply_.range = ContentRange{0, 0, 0};
    return;
  }
  judgement_ = request_.whole != nullptr
                   ? judge_whole()
                   : judge(reply_, {request_.begin, request_.end, request_.file_bytes, etag_, request_.may_be_short});
}

std::size_t Transfer::take_body(std::span<const char> bytes) {
  judge_once();
  if (is_empty_) return bytes.size();  // the page that says so
  got_ += bytes.size();
  if (judgement_.worth != Worth::Good) {
    if (reply_.status >= 400) told_.append(bytes.data(), std::min(bytes.size(), kMostTold - told_.size()));
    return got_ <= kMostUnwanted ? bytes.size() : 0;
  }
  const std::uint64_t most = request_.whole != nullptr ? request_.most : request_.end - request_.begin;
  if (got_ > most) {
    judgement_ = {request_.whole != nullptr ? Worth::Unwanted : Worth::Again,
                  fmt::format("more than {} bytes came", with_commas(most))};
    return 0;
  }
  place(bytes);
  return bytes.size();
}

void Transfer::place(std::span<const char> bytes) {
  if (request_.whole != nullptr) {
    request_.whole->append(bytes.data(), bytes.size());
    return;
  }
  if (request_.reads.empty()) {
    std::memcpy(request_.into.data() + (got_ - bytes.size()), bytes.data(), bytes.size());
    return;
  }
  while (!bytes.empty()) {
    const Read& read = *request_.reads[piece_];
    const std::size_t size = std::min<std::uint64_t>(bytes.size(), read.size - piece_got_);
    std::memcpy(read.destination + piece_got_, bytes.data(), size);
    bytes = bytes.subspan(size);
    piece_got_ += size;
    if (piece_got_ < read.size) continue;
    ++piece_;
    piece_got_ = 0;
  }
}

std::string Transfer::name() const {
  std::string text = shown_address(request_.path);
  if (request_.whole == nullptr) {
    text += fmt::format(", bytes {} to {}", with_commas(request_.begin), with_commas(request_.end));
  }
  return text;
}

// What a server was told it may tell: in an ETag, a code of an error, the address of a redirect.
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
  if (due_ < deadline_) return Next::Again;
  const Next next =
      refuse(ErrorKind::IoError, fmt::format("{}: {}", given_up(shared_.options.deadline, attempts_), reason));
  if (budget_ != nullptr) budget_->give_up(error_);
  return next;
}

// What libcurl could not do. Its own words, without the address that they may hold.
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
      if (std::string_view(words_.data()).find("disabled") != std::string_view::npos) {  // a libcurl without TLS
        return {Worth::Unwanted, reason};
      }
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

// Whether another address is worth an attempt: once.
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
