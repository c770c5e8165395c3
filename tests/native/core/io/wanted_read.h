// Reads of tests: each with a buffer of its own, of files whose every byte is known.
#pragma once

#include "core/base/error.h"
#include "core/io/byte_store.h"

#include <gtest/gtest.h>

#include <chrono>
#include <deque>
#include <string>
#include <vector>

namespace penstock::testing {

inline unsigned char byte_at(std::uint64_t i, unsigned seed) {
  return static_cast<unsigned char>((i * 131 + i / 251 + seed * 97) & 0xFF);
}

inline std::string content_of(std::uint64_t bytes, unsigned seed = 0) {
  std::string content(bytes, '\0');
  for (std::uint64_t i = 0; i < bytes; ++i) content[i] = static_cast<char>(byte_at(i, seed));
  return content;
}

struct WantedRead {
  WantedRead(const File& file, std::uint64_t offset, std::uint64_t size) : buffer(size) {
    read.file = &file;
    read.offset = offset;
    read.size = size;
    read.destination = buffer.data();
  }
  /// Whether it gave the bytes of content_of(…, seed).
  [[nodiscard]] bool right(unsigned seed) const {
    if (read.outcome != Outcome::Done || read.error) return false;
    for (std::uint64_t i = 0; i < read.size; ++i) {
      if (static_cast<unsigned char>(buffer[i]) != byte_at(read.offset + i, seed)) return false;
    }
    return true;
  }
  /// Its error, which is a penstock::Error; one without words if it has none.
  [[nodiscard]] Error error() const {
    try {
      if (read.error) std::rethrow_exception(read.error);
    } catch (const Error& error) {
      return error;
    }
    return {ErrorKind::StateMismatch, ""};
  }
  [[nodiscard]] std::string message() const { return error().what(); }
  [[nodiscard]] ErrorKind kind() const { return error().kind(); }
  std::vector<std::byte> buffer;
  Read read;
};

inline std::vector<Read*> pointers_to(std::deque<WantedRead>& wanted) {
  std::vector<Read*> reads;
  for (WantedRead& one : wanted) reads.push_back(&one.read);
  return reads;
}

/// All to their ends, seven at a time; each ends once.
inline void run(Channel& channel, std::deque<WantedRead>& wanted) {
  channel.submit(pointers_to(wanted));
  std::vector<Read*> done(7);
  std::size_t count = 0;
  const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (count < wanted.size() && std::chrono::steady_clock::now() < patience) {
    count += channel.wait(done, std::chrono::seconds(1));
  }
  ASSERT_EQ(count, wanted.size());
  EXPECT_EQ(channel.wait(done, std::chrono::seconds(0)), 0U);
}

inline Outcome read_one(Channel& channel, WantedRead& wanted) {
  Read* read = &wanted.read;
  channel.submit({&read, 1});
  while (channel.wait({&read, 1}, std::chrono::seconds(20)) == 0) {
  }
  return wanted.read.outcome;
}

}  // namespace penstock::testing
