// Any bytes as all that a server answers to each request: sizes, ranges, whole files and neighbours are asked for.
//
// The server is a thread here, and the proxy of whatever host a reply redirects to: nothing leaves the machine.
#include "core/io/http/http_store.h"
#include "tests/fuzz/targets.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <thread>

namespace penstock::fuzz {
namespace {

class Server {
 public:
  Server() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* const at = reinterpret_cast<sockaddr*>(&address);
    socklen_t size = sizeof address;
    require(::bind(socket_, at, size) == 0 && ::listen(socket_, 64) == 0 && ::getsockname(socket_, at, &size) == 0,
            "no server on this machine's loopback");
    address_ = "http://127.0.0.1:" + std::to_string(ntohs(address.sin_port));
    for (const char* name : {"http_proxy", "https_proxy", "all_proxy"}) ::setenv(name, address_.c_str(), 1);
    std::thread([this] { serve(); }).detach();  // to the end of the process
  }

  [[nodiscard]] const std::string& address() const noexcept { return address_; }
  void set_answer(Input answer) {
    const std::lock_guard lock(mutex_);
    answer_ = text_of(answer);
  }

 private:
  [[noreturn]] void serve() {
    while (true) {
      const int peer = ::accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC);
      const timeval patience{1, 0};
      (void)::setsockopt(peer, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
      std::string asked;
      std::array<char, 4096> some{};
      while (asked.find("\r\n\r\n") == std::string::npos) {
        const ssize_t got = ::recv(peer, some.data(), some.size(), 0);
        if (got <= 0) break;
        asked.append(some.data(), static_cast<std::size_t>(got));
      }
      std::string answer;
      {
        const std::lock_guard lock(mutex_);
        answer = answer_;
      }
      (void)::send(peer, answer.data(), answer.size(), MSG_NOSIGNAL);
      (void)::shutdown(peer, SHUT_WR);
      ::close(peer);
    }
  }

  const int socket_;
  std::string address_;
  std::mutex mutex_;
  std::string answer_;
};

void read_neighbours(HttpStore& store, const std::string& path) {
  constexpr std::uint64_t kSize = 50;
  const File file(path, 1234, &store);
  std::array<std::array<std::byte, kSize>, 2> bytes{};
  std::array<Read, 2> reads;
  std::array<Read*, 2> pointers{};
  for (std::size_t i = 0; i < reads.size(); ++i) {
    reads[i].file = &file;
    reads[i].offset = i * kSize;
    reads[i].size = kSize;
    reads[i].destination = bytes[i].data();
    pointers[i] = &reads[i];
  }
  const std::unique_ptr<Channel> channel = store.open_channel(ChannelMode::MayWait);
  channel->submit(pointers);
  std::size_t done = 0;
  std::array<Read*, 2> ended{};
  for (int i = 0; done < reads.size(); ++i) {
    require(i < 600, "a read of a server does not end");
    done += channel->wait(ended, std::chrono::milliseconds(100));
  }
  for (const Read& read : reads) {
    if (read.error) std::rethrow_exception(read.error);
  }
}

}  // namespace

bool http_server(Input input) {
  static auto* const server = new Server();
  const std::size_t choice = take_choice(input, 4);
  server->set_answer(input);
  HttpOptions options;
  options.server = server->address();
  options.deadline = std::chrono::milliseconds(5);  // of one attempt, mostly
  HttpStore store(std::move(options), plain_addresses({}, false));
  const std::string path = server->address() + "/f";
  return accepts([&] {
    if (choice == 0) {
      std::array<std::byte, 100> bytes{};
      store.read_small(path, 0, bytes);
    } else if (choice == 1) {
      store.size(path, Links::Follow);
    } else if (choice == 2) {
      std::string text;
      require(store.read_whole(path, 1000, text) && text.size() <= 1000, "more bytes than were wanted");
    } else {
      read_neighbours(store, path);
    }
  });
}

}  // namespace penstock::fuzz
