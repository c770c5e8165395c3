// Progress: counts bytes and tells about every 8 MiB of them, so that a bar moves and Ctrl-C is heard.
//
// One thread at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>

namespace penstock::writer {

/// Takes (bytes done, bytes in all). May throw to stop.
using TellProgress = std::function<void(std::uint64_t, std::uint64_t)>;

class Progress {
 public:
  /// `tell` may be empty.
  explicit Progress(TellProgress tell) : tell_(std::move(tell)) {}

  /// Bytes in all; may be set anew when more is known.
  void expect(std::uint64_t total) noexcept { total_ = total; }

  void passed(std::uint64_t bytes) {
    done_ += bytes;
    if (done_ - told_ >= kEvery) tell();
  }

  void tell() {
    told_ = done_;
    if (tell_) tell_(std::min(done_, total_), total_);
  }

  /// All is done.
  void end() {
    done_ = total_;
    tell();
  }

  [[nodiscard]] std::uint64_t done() const noexcept { return done_; }

 private:
  static constexpr std::uint64_t kEvery = 8U << 20;

  TellProgress tell_;
  std::uint64_t done_ = 0;
  std::uint64_t told_ = 0;
  std::uint64_t total_ = 0;
};

}  // namespace penstock::writer
