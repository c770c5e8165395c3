#include "core/io/http/multi.h"

#include "core/base/error.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <new>
#include <string>
#include <system_error>

namespace penstock {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr int kMostEvents = 64;  // taken at a time
constexpr std::int64_t kMostMilliseconds = 1000;

void check(CURLMcode code) {
  if (code == CURLM_OUT_OF_MEMORY) throw std::bad_alloc();
  if (code != CURLM_OK) {
    raise(ErrorKind::IoError, "libcurl fails: code {} of its multi interface", static_cast<int>(code));
  }
}

// Runs the transfers that were added: one for which there is no memory ends, or goes on at its next event.
void check_run(CURLMcode code) {
  if (code != CURLM_OUT_OF_MEMORY) check(code);
}

[[noreturn]] void fail(const char* what, int error_number) {
  const std::string why = std::generic_category().message(error_number);
  const char* const remedy = error_number == EMFILE ? " (ulimit -n)" : "";
  throw Error(ErrorKind::IoError, fmt::format("reading over HTTP: {}: {}{}", what, why, remedy), error_number, "");
}

int bits_of(std::uint32_t events) {
  return ((events & (EPOLLIN | EPOLLHUP)) != 0 ? CURL_CSELECT_IN : 0) |
         ((events & EPOLLOUT) != 0 ? CURL_CSELECT_OUT : 0) | ((events & EPOLLERR) != 0 ? CURL_CSELECT_ERR : 0);
}

}  // namespace

Multi::Multi(const Curl& curl, std::size_t connections)
    : curl_(curl),
      multi_(curl.multi_init()),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      wakeup_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = wakeup_;
  if (epoll_ < 0 || wakeup_ < 0 || ::epoll_ctl(epoll_, EPOLL_CTL_ADD, wakeup_, &event) != 0) {
    const int why = errno;
    close_all();
    fail("epoll", why);
  }
  if (multi_ == nullptr) {
    close_all();
    throw std::bad_alloc();
  }
  const auto most = static_cast<long>(connections);
  (void)curl_.multi_setopt(multi_, CURLMOPT_MAX_TOTAL_CONNECTIONS, most);
  (void)curl_.multi_setopt(multi_, CURLMOPT_MAXCONNECTS, most);
  (void)curl_.multi_setopt(multi_, CURLMOPT_SOCKETFUNCTION, &Multi::on_socket);
  (void)curl_.multi_setopt(multi_, CURLMOPT_SOCKETDATA, static_cast<void*>(this));
  (void)curl_.multi_setopt(multi_, CURLMOPT_TIMERFUNCTION, &Multi::on_time);
  (void)curl_.multi_setopt(multi_, CURLMOPT_TIMERDATA, static_cast<void*>(this));
}

Multi::~Multi() {
  close_all();
}

void Multi::close_all() noexcept {
  if (multi_ != nullptr) (void)curl_.multi_cleanup(multi_);  // calls on_socket
  if (epoll_ >= 0) ::close(epoll_);
  if (wakeup_ >= 0) ::close(wakeup_);
}

// What libcurl wants to know of a socket. Returns -1 where it cannot be watched, and libcurl gives its transfers up.
int Multi::on_socket(CURL* /*handle*/, curl_socket_t socket, int what, void* self, void* /*known*/) {
  const std::uint32_t events =
      ((what & CURL_POLL_IN) != 0 ? EPOLLIN : 0U) | ((what & CURL_POLL_OUT) != 0 ? EPOLLOUT : 0U);
  try {
    return static_cast<Multi*>(self)->watch(socket, what == CURL_POLL_REMOVE ? 0 : events);
  } catch (const std::bad_alloc&) {
    return -1;
  }
}

int Multi::watch(curl_socket_t socket, std::uint32_t events) {
  Socket& own = sockets_[socket];
  own.is_wanted = events != 0;
  if (!own.is_wanted) {
    if (!own.is_connection) forget(socket);  // a connection stays watched: nothing comes between two requests
    return 0;
  }
  if (own.is_connection && own.is_watched && own.events == events) return 0;
  own.events = events;
  epoll_event event{};
  event.events = events;
  event.data.fd = socket;
  const int likely = own.is_watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
  own.is_watched = true;
  if (::epoll_ctl(epoll_, likely, socket, &event) == 0) return 0;
  if (errno != ENOENT && errno != EEXIST) return -1;  // else the number was another socket's
  return ::epoll_ctl(epoll_, errno == ENOENT ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, socket, &event);
}

// Before it is closed: a child after a fork may hold the socket too, and epoll would go on telling of it.
void Multi::forget(curl_socket_t socket) noexcept {
  const auto found = sockets_.find(socket);
  if (found == sockets_.end()) return;
  if (found->second.is_watched) (void)::epoll_ctl(epoll_, EPOLL_CTL_DEL, socket, nullptr);
  sockets_.erase(found);
}

int Multi::on_open(void* self, curl_socket_t socket, curlsocktype /*purpose*/) {
  try {
    static_cast<Multi*>(self)->sockets_[socket] = {true, false, false, 0};
    return CURL_SOCKOPT_OK;
  } catch (const std::bad_alloc&) {
    return CURL_SOCKOPT_ERROR;
  }
}

int Multi::on_close(void* self, curl_socket_t socket) {
  static_cast<Multi*>(self)->forget(socket);
  return ::close(socket);
}

int Multi::on_time(CURLM* /*multi*/, long milliseconds_left, void* self) {
  auto& due = static_cast<Multi*>(self)->due_;
  if (milliseconds_left < 0) {
    due.reset();
  } else {
    due = Clock::now() + milliseconds(milliseconds_left);
  }
  return 0;
}

void Multi::prepare(CURL* transfer) {
  (void)curl_.easy_setopt(transfer, CURLOPT_SOCKOPTFUNCTION, &Multi::on_open);
  (void)curl_.easy_setopt(transfer, CURLOPT_SOCKOPTDATA, static_cast<void*>(this));
  (void)curl_.easy_setopt(transfer, CURLOPT_CLOSESOCKETFUNCTION, &Multi::on_close);
  (void)curl_.easy_setopt(transfer, CURLOPT_CLOSESOCKETDATA, static_cast<void*>(this));
}

void Multi::add(CURL* transfer) {
  check(curl_.multi_add_handle(multi_, transfer));
}

void Multi::remove(CURL* transfer) noexcept {
  (void)curl_.multi_remove_handle(multi_, transfer);
}

const CURLMsg* Multi::next_ended() noexcept {
  int left = 0;
  while (const CURLMsg* const message = curl_.multi_info_read(multi_, &left)) {
    if (message->msg == CURLMSG_DONE) return message;
  }
  return nullptr;
}

void Multi::wake() const noexcept {
  const std::uint64_t one = 1;
  (void)!::write(wakeup_, &one, sizeof one);  // full: it is awake already
}

void Multi::run_due() {
  if (!due_ || *due_ > Clock::now()) return;
  due_.reset();  // libcurl tells the next one, which may be now again
  int running = 0;
  check_run(curl_.multi_socket_action(multi_, CURL_SOCKET_TIMEOUT, 0, &running));
}

void Multi::run(nanoseconds timeout) {
  timeout = std::max(timeout, nanoseconds(0));  // of a negative one epoll_wait makes "for ever"
  if (due_) timeout = std::clamp(*due_ - Clock::now(), nanoseconds(0), timeout);
  const std::int64_t whole = std::chrono::ceil<milliseconds>(timeout).count();
  std::array<epoll_event, kMostEvents> events;
  const int count =
      ::epoll_wait(epoll_, events.data(), kMostEvents, static_cast<int>(std::min(whole, kMostMilliseconds)));
  if (count < 0 && errno != EINTR) fail("epoll_wait", errno);
  for (int i = 0; i < count; ++i) {
    if (events[i].data.fd == wakeup_) {
      std::uint64_t calls = 0;
      (void)!::read(wakeup_, &calls, sizeof calls);
      continue;
    }
    const curl_socket_t socket = events[i].data.fd;
    const auto found = sockets_.find(socket);
    if (found == sockets_.end()) continue;  // closed since
    if (!found->second.is_wanted) {         // kept, and the server hangs up
      found->second.is_watched = false;
      (void)::epoll_ctl(epoll_, EPOLL_CTL_DEL, socket, nullptr);
      continue;
    }
    int running = 0;
    check_run(curl_.multi_socket_action(multi_, socket, bits_of(events[i].events), &running));
  }
  run_due();
}

}  // namespace penstock
