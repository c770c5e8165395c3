// PythonStore: files that objects of Python fetch, as a ByteStore.
//
// Its channels put what they are to read into PythonCalls, whose threads are Python's own
// (penstock/_places/stores/threads.py); nothing here touches Python but `while_waiting`. A child after a fork may not
// read: the threads are its parent's. Any thread.
#pragma once

#include "bindings/python_calls.h"
#include "core/io/byte_store.h"
#include "core/io/file_ends.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace penstock::bindings {

class PythonStore final : public ByteStore, public AsksAhead {
 public:
  /// `has_whole`: one call brings a whole file. `while_waiting` is called several times a second by what waits for an
  /// answer, without the GIL; it may throw.
  PythonStore(std::shared_ptr<PythonCalls> calls, bool has_whole, std::function<void()> while_waiting);
  ~PythonStore() override;
  PythonStore(const PythonStore&) = delete;
  PythonStore& operator=(const PythonStore&) = delete;

  std::unique_ptr<Channel> open_channel(ChannelMode mode) override;
  std::uint64_t size(const std::string& path, Links links) override;
  void read_small(const std::string& path, std::uint64_t offset, std::span<std::byte> out) override;
  /// Two rounds of requests: the sizes that no listing told, then beginnings and ends.
  void look_ahead(const std::vector<std::string>& paths) override;
  void drop_ends() noexcept override;
  bool read_whole(const std::string& path, std::uint64_t most, std::string& text) override;
  std::vector<std::string> list(const std::string& path) override;
  [[nodiscard]] std::size_t reads_in_flight() override { return calls_->connections(); }
  [[nodiscard]] std::uint64_t near_bytes() const override;
  [[nodiscard]] std::uint64_t most_unwanted() const override { return 50; }
  [[nodiscard]] std::uint64_t most_bytes() const override;
  [[nodiscard]] bool is_far() const override { return true; }
  void while_waiting() override {
    if (while_waiting_) while_waiting_();
  }
  [[nodiscard]] std::string name() override { return "python"; }

 private:
  void refuse_child() const;
  StoreRequests ask_all(std::vector<StoreRequest> requests);
  std::shared_ptr<StoreRequest> ask(StoreRequest request);

  const std::shared_ptr<PythonCalls> calls_;
  const bool has_whole_;
  const std::function<void()> while_waiting_;
  const std::uint64_t forks_;
  FileEnds ends_;
};

}  // namespace penstock::bindings
