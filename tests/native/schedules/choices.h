// Choices: who goes on where several could, and how what is left open turns out. The schedule is the sequence of them.
//
// RandomChoices are those of a number; DepthFirst goes through all there are, one schedule after the other. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace penstock::schedules {

/// What a thread, or storage, is about to do, and to what: nothing that is seen by others happens between two of them.
struct Step {
  enum class Kind : std::uint8_t {
    Begin,     // a thread
    Lock,      // a mutex that is free
    Load,      // a shared value
    Store,     // one, or both at once
    Register,  // among those that wait for a condition
    Wait,      // for it
    Notify,
    Join,
    Sleep,
    Submit,    // to a channel
    Collect,   // from one
    Wake,      // one
    Complete,  // storage: a read of one
  };
  Kind kind = Kind::Begin;
  const void* object = nullptr;
};

/// "locks", "notifies", …
const char* word_of(Step::Kind kind) noexcept;
/// Whether two steps of different threads give the same whichever comes first.
bool are_independent(const Step& a, const Step& b) noexcept;

/// One who could go on.
struct Turn {
  int id = 0;  // of a thread; kStorage and beyond: of a read that could end
  Step step;
  bool is_present = false;  // the thread that took the last step
};
constexpr int kStorage = 1'000'000;

class Choices {
 public:
  virtual ~Choices() = default;
  /// The number of the turn that is taken, of at least one; sorted by id.
  virtual std::size_t turn(std::span<const Turn> turns) = 0;
  /// A number below `count`.
  virtual std::size_t pick(std::size_t count) = 0;
  /// True, now and then: once in so many times.
  virtual bool happens(unsigned once_in) = 0;
  /// Whether threads go on whose time is over although others could, or whose sleep has not ended.
  virtual bool time_may_pass() = 0;
  /// The thread waited in vain, or sleeps: it lets others go first.
  virtual void yielded(int /*id*/) {}
};

/// SplitMix64.
class Numbers {
 public:
  explicit Numbers(std::uint64_t seed) noexcept : state_(seed) {}
  std::uint64_t next() noexcept;
  std::uint64_t below(std::uint64_t count) noexcept { return count <= 1 ? 0 : next() % count; }
  bool happens(unsigned once_in) noexcept { return once_in > 0 && below(once_in) == 0; }
  template <typename T>
  T one_of(std::initializer_list<T> values) noexcept {
    return values.begin()[below(values.size())];
  }

 private:
  std::uint64_t state_;
};

/// By one of three rules, which the seed chooses: any who could go on; the present thread for a while, then any; by
/// priorities that change now and then (after PCT: Burckhardt and others, ASPLOS 2010).
class RandomChoices : public Choices {
 public:
  explicit RandomChoices(std::uint64_t seed);
  std::size_t turn(std::span<const Turn> turns) override;
  std::size_t pick(std::size_t count) override { return numbers_.below(count); }
  bool happens(unsigned once_in) override { return numbers_.happens(once_in); }
  bool time_may_pass() override { return numbers_.happens(early_); }
  void yielded(int id) override;

 private:
  std::int64_t priority(int id);
  void lower(int id);
  std::size_t highest(std::span<const Turn> turns);

  Numbers numbers_;
  bool by_priority_ = false;
  unsigned stays_ = 1;   // the present thread goes on but for once in so many steps
  unsigned change_ = 0;  // once in so many steps the present thread's priority becomes the lowest
  unsigned early_ = 0;   // once in so many steps time may pass
  std::int64_t lowest_ = 0;
  std::vector<std::pair<int, std::int64_t>> priorities_;  // by id; storage has one
};

/// All schedules, or those in which a thread that could go on is made to wait at most `interruptions` times. Without
/// that bound only one of those is tried that differ in the order of independent steps alone (sleep sets: Godefroid
/// 1996).
class DepthFirst : public Choices {
 public:
  static constexpr unsigned kUnbounded = ~0U;
  explicit DepthFirst(unsigned interruptions) : most_(interruptions) {}

  std::size_t turn(std::span<const Turn> turns) override;
  std::size_t pick(std::size_t count) override;
  bool happens(unsigned once_in) override { return once_in == 1; }
  bool time_may_pass() override { return false; }

  /// On to the next schedule; false if there is none.
  bool next();
  /// Whether the last one was left where it became like an earlier one, and then ended anyhow.
  [[nodiscard]] bool was_redundant() const noexcept { return redundant_; }
  /// The numbers of the choices of the last schedule, which replay() takes.
  [[nodiscard]] std::string text() const;
  void replay(const std::string& text);

 private:
  using Asleep = std::vector<std::pair<int, Step>>;
  struct Node {
    std::vector<Turn> turns;         // that are tried, in this order; none: a pick
    std::vector<std::size_t> given;  // their numbers as they were given
    std::size_t count = 0;           // of alternatives
    std::size_t at = 0;              // the present one
  };
  Node node_of(std::span<const Turn> turns) const;
  std::size_t follow(const Node& node);

  const unsigned most_;
  std::vector<Node> path_;
  std::size_t depth_ = 0;
  unsigned interruptions_ = 0;  // of the present schedule
  Asleep asleep_;               // threads whose next step was tried before, and is independent of all since
  bool redundant_ = false;
  std::vector<std::size_t> replayed_;
};

}  // namespace penstock::schedules
