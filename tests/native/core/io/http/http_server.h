// HttpServer: a server of HTTP/1.1 on this machine: files in memory, ranges of them, and faults by a script.
//
// Any thread. A thread accepts connections, and each has one that answers its requests.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <limits>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace penstock::testing {

/// How one reply differs from the right one.
struct Fault {
  std::string status = {};   // "503 Busy"
  std::string headers = {};  // lines, each ended by \r\n, in the place of those of their names
  std::string body = {};     // of a status of its own
  std::size_t cut = std::numeric_limits<std::size_t>::max();  // the connection ends after so many bytes of the body …
  bool hangs_up = false;                                      // … or before any answer
  bool is_held = false;                                       // until release()
};

class HttpServer {
 public:
  HttpServer() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    if (::bind(listener_, any, size) != 0 || ::listen(listener_, 64) != 0 || ::getsockname(listener_, any, &size) != 0)
      throw std::runtime_error("no server on this machine");
    origin_ = "http://127.0.0.1:" + std::to_string(ntohs(address.sin_port));
    acceptor_ = std::thread([this] { accept_all(); });
  }
  ~HttpServer() {
    release();
    ::shutdown(listener_, SHUT_RDWR);
    acceptor_.join();
    for (const int each : connections_) ::shutdown(each, SHUT_RDWR);
    for (std::thread& each : threads_) each.join();
    for (const int each : connections_) ::close(each);
    ::close(listener_);
  }
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  [[nodiscard]] std::string url(const std::string& path = "") const { return origin_ + path; }
  void put(const std::string& path, std::string content, const std::string& etag = "\"1\"") {
    const std::lock_guard lock(mutex_);
    files_[path] = {std::move(content), etag};
  }
  /// Of the next requests for the path, one each.
  void script(const std::string& path, std::vector<Fault> faults) {
    const std::lock_guard lock(mutex_);
    faults_[path].assign(faults.begin(), faults.end());
  }
  /// Heads of all requests that came, in order.
  [[nodiscard]] std::vector<std::string> asked() {
    const std::lock_guard lock(mutex_);
    return asked_;
  }
  void release() {
    const std::lock_guard lock(mutex_);
    is_released_ = true;
    released_.notify_all();
  }

 private:
  void accept_all() {
    for (int fd = 0; (fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC)) >= 0;) {
      connections_.push_back(fd);
      threads_.emplace_back([this, fd] { serve(fd); });
    }
  }

  void serve(int fd) {
    std::string text;
    while (true) {
      const std::size_t end = text.find("\r\n\r\n");
      if (end != std::string::npos) {
        const std::string head = text.substr(0, end + 2);
        text.erase(0, end + 4);
        if (!answer(fd, head)) break;
        continue;
      }
      char buffer[4096];
      const ssize_t got = ::recv(fd, buffer, sizeof buffer, 0);
      if (got <= 0) break;
      text.append(buffer, static_cast<std::size_t>(got));
    }
    ::shutdown(fd, SHUT_RDWR);
  }

  // False: the connection ends.
  bool answer(int fd, const std::string& head) {
    std::string path = head.substr(0, head.find(" HTTP/")).substr(head.find(' ') + 1);
    path = path.substr(0, path.find('?'));
    Fault fault;
    std::unique_lock lock(mutex_);
    asked_.push_back(head);
    if (auto& faults = faults_[path]; !faults.empty()) {
      fault = faults.front();
      faults.pop_front();
    }
    if (fault.is_held) released_.wait_for(lock, std::chrono::seconds(10), [&] { return is_released_; });
    if (fault.hangs_up) return false;
    const auto found = files_.find(path);
    const bool is_there = found != files_.end();
    const auto [bytes, etag] = is_there ? found->second : std::pair<std::string, std::string>();
    lock.unlock();
    std::string status = is_there ? "200 OK" : "404 Not Found";
    std::string body = bytes;
    std::vector<std::pair<std::string, std::string>> lines;
    if (!etag.empty()) lines.emplace_back("ETag", etag);
    unsigned long long begin = 0;
    unsigned long long last = 0;
    const std::size_t range = head.find("\r\nRange: bytes=");
    if (is_there && range != std::string::npos &&
        std::sscanf(head.c_str() + range, "\r\nRange: bytes=%llu-%llu", &begin, &last) == 2) {
      const bool is_beyond = begin >= bytes.size();
      last = std::min<unsigned long long>(last, bytes.size() - 1);
      status = is_beyond ? "416 Range Not Satisfiable" : "206 Partial Content";
      body = is_beyond ? "" : bytes.substr(begin, last + 1 - begin);
      const std::string part = is_beyond ? "*" : std::to_string(begin) + "-" + std::to_string(last);
      lines.emplace_back("Content-Range", "bytes " + part + "/" + std::to_string(bytes.size()));
    }
    if (!fault.status.empty()) status = fault.status;
    if (!fault.status.empty() && !status.starts_with("206")) {
      body = fault.body;
      if (lines.size() > 1) lines.pop_back();
    }
    const bool ends = fault.headers.find("Connection: close") != std::string::npos;
    if (!ends) lines.emplace_back("Content-Length", std::to_string(body.size()));
    if (ends) body += fault.body;
    std::string reply = "HTTP/1.1 " + status + "\r\n" + fault.headers;
    for (const auto& [name, value] : lines) {
      if (fault.headers.find(name + ":") == std::string::npos) reply += name + ": " + value + "\r\n";
    }
    reply += "\r\n" + body.substr(0, std::min(fault.cut, body.size()));
    for (std::size_t sent = 0; sent < reply.size();) {
      const ssize_t some = ::send(fd, reply.data() + sent, reply.size() - sent, MSG_NOSIGNAL);
      if (some <= 0) return false;
      sent += static_cast<std::size_t>(some);
    }
    return !ends && fault.cut > body.size();
  }

  const int listener_;
  std::string origin_;
  std::thread acceptor_;
  std::vector<int> connections_;      // of the acceptor's thread
  std::vector<std::thread> threads_;  // too
  std::mutex mutex_;
  std::condition_variable released_;
  bool is_released_ = false;
  std::map<std::string, std::pair<std::string, std::string>> files_;  // bytes, and their ETag
  std::map<std::string, std::deque<Fault>> faults_;
  std::vector<std::string> asked_;
};

}  // namespace penstock::testing
