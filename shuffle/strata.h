// Strata: members interleaved by integer weights, in closed form, so that each has its share at every position.
//
// With S members of weights w_s and their sum W there are two forms. In both a member's slots come in the order of
// their numbers, so what it has given at any position is {0, …, n - 1}, and the sequence may be cut anywhere.
//   - W <= kMostWord: *turned words*. The slots (k + v) / w_s of M periods, sorted, are a word of M W slots. v lies
//   around
//     1/2 by a 32-bit hash, within w_s / (2 (W - w)) for the least weight w, and within 1/2. There are up to 64 words;
//     each M W positions are one of them, from a place on round its end to that place, and a hash chooses both. So
//     every position is of s with probability w_s / W exactly: where the number of ranks is a multiple of W, a word
//     that is not turned would give each rank another mixture for ever, however its slots are jittered. Words of many
//     slots are turned less often, since ranks that are nearly in step with a word drift through it and see the whole
//     of it.
//   - W beyond: *jittered strata*. Slot k stands at the time (k + u/2^32) / w_s, where u is a 32-bit hash of (the
//     member's key, k): once in each stratum [k/w_s, (k+1)/w_s). Before time x there are floor(w_s x) slots of s, or
//     one more, which one hash tells.
// In strata a member has given w_s x within 1 before any time x. From a place of a word on it has given its share of
// the time within 1 + w_s / (W - w). Position q is off by the sum of all members' errors; so in both forms what s has
// given there is within 1 + S w_s / W of q w_s / W. Integers decide everything. A word is made when it is first asked
// for, since short stages see few of theirs; else immutable: any thread.
#pragma once

#include "shuffle/strata_members.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace penstock::shuffle {

class Strata {
 public:
  /// The sum of the weights, once divided by what divides them all, is below this.
  static constexpr std::uint64_t kMostWeight = std::uint64_t{1} << 62;
  /// Words are for sums of weights up to this: more than a job has ranks, and few enough for a table of each stage.
  static constexpr std::uint64_t kMostWord = 4096;
  /// A sum up to the first is a word by itself; beyond, periods are repeated to a word of about the second.
  static constexpr std::uint64_t kShortWord = 64;
  static constexpr std::uint64_t kLongWord = 1024;
  /// From 4 to 64 words are made, as many as have so many slots.
  static constexpr std::uint64_t kLetters = 16384;

  using Member = StrataMember;
  /// At least one member; of slots at one time that of the first member comes first. Weights are divided by what
  /// divides them all; their sum is then below kMostWeight. Jittered strata begin at time 0, where a heavy member's
  /// slot is more often the first than its share says; where they begin `anywhere`, at one of their first W positions
  /// that a hash chooses, each position is of s with probability w_s / W, as in turned words: for sequences of few
  /// positions. Given is then within 2 + 2 S w_s / W.
  explicit Strata(std::vector<Member> members, bool anywhere = false);

  /// out[i] = the slot at position first + i * stride, all of them at most 2^63.
  void find(std::uint64_t first, std::uint64_t stride, std::span<Slot> out) const;
  /// The position of a slot: the inverse of find().
  [[nodiscard]] std::uint64_t position_of(const Slot& slot) const;
  /// out[s] = the slots of member s before `position`.
  void count(std::uint64_t position, std::span<std::uint64_t> out) const;

  /// Slots of a member that its first one comes after, where strata begin anywhere.
  [[nodiscard]] std::uint64_t skipped(std::size_t member) const { return skipped_.empty() ? 0 : skipped_[member]; }
  [[nodiscard]] std::span<const Member> members() const noexcept { return all_.members; }
  /// Of the divided weights.
  [[nodiscard]] std::uint64_t total() const noexcept { return all_.total; }

 private:
  /// A slot of the word: which of its member's in the period.
  struct Letter {
    std::uint32_t member = 0;
    std::uint32_t number = 0;
  };

  struct Word {
    std::vector<Letter> letters;
    std::vector<std::uint32_t> places;  // of its letters, member by member: see firsts_
  };
  /// Room for a word, which the first thread that needs it makes.
  struct WordRoom {
    std::atomic<const Word*> made = nullptr;
    WordRoom() = default;
    ~WordRoom() { delete made.load(); }
    WordRoom(const WordRoom&) = delete;
    WordRoom& operator=(const WordRoom&) = delete;
  };

  /// A period: which word it is, and the place at which it begins.
  struct Turn {
    const Word& word;
    std::uint64_t place = 0;
  };

  [[nodiscard]] std::uint64_t letters_of(std::size_t member) const noexcept {
    return firsts_[member + 1] - firsts_[member];
  }
  [[nodiscard]] const Word& word(std::uint64_t number) const;
  [[nodiscard]] Word make_word(std::uint64_t number) const;
  [[nodiscard]] Turn turn(std::uint64_t period) const;
  [[nodiscard]] std::uint64_t before(const Word& word, std::size_t member, std::uint64_t place) const;
  [[nodiscard]] Slot slot_at(std::uint64_t position) const;

  StrataMembers all_;
  std::uint64_t begin_ = 0;                // of jittered strata: the position that is the first
  std::vector<std::uint64_t> skipped_;     // of each member, before it
  std::uint64_t words_ = 0;                // 0: jittered strata
  std::uint64_t repeats_ = 0;              // periods of a word, M
  std::uint64_t length_ = 0;               // of a word: M W
  std::vector<std::uint32_t> firsts_;      // of each member's places in a word, and their number
  std::unique_ptr<WordRoom[]> made_ = {};  // of all words
};

}  // namespace penstock::shuffle
