#include "core/io/http/transfer.h"

#include "core/base/error.h"
#include "core/io/http/address.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <utility>

namespace penstock {
namespace {

constexpr long kBufferBytes = 64 << 10;
constexpr std::uint64_t kSlowBytes = 1024;  // a second, for so long: a stall
constexpr std::chrono::seconds kStall{5};
constexpr std::chrono::seconds kLateStall{1};              // … once the deadline is over
constexpr std::uint64_t kMostUnwanted = 64 << 10;          // of a reply's body: more is not worth a kept connection
constexpr std::size_t kMostTold = 1 << 10;                 // of a page that says what was wrong
constexpr auto kQuickExit = static_cast<CURLoption>(322);  // CURLOPT_QUICK_EXIT, from 7.87 on

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
    if (const std::exception_ptr failure = budget_->refusal(now)) std::rethrow_exception(failure);
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
  return now - was_fast_at_ >= (now >= deadline_ || is_budget_spent() ? kLateStall : kStall);
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

}  // namespace penstock
