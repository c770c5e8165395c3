#include "shuffle/strata.h"

#include "shuffle/strata_walk.h"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <utility>

namespace penstock::shuffle {
namespace {

// What keys are for. Part of algorithm 1: never renumbered.
enum StrataPurpose : std::uint64_t { kWord = 1, kPlace };

}  // namespace

Strata::Strata(std::vector<Member> members, bool anywhere) : all_{std::move(members)} {
  std::uint64_t common = 0;
  for (const Member& member : all_.members) common = std::gcd(common, member.weight);
  for (Member& member : all_.members) {
    assert(member.weight > 0);
    member.weight /= common;
    all_.total += member.weight;
  }
  assert(!all_.members.empty() && all_.total < kMostWeight);
  if (all_.total > kMostWord) {
    all_.by_total.emplace(all_.total);
    for (const Member& member : all_.members) all_.by_weight.emplace_back(member.weight);
    if (!anywhere || all_.members.size() == 1) return;
    begin_ = scale64(all_.members.front().key.absorb(kPlace).at(0), all_.total);
    skipped_.resize(all_.members.size());
    StrataWalk walk(all_);
    walk.seek(begin_);
    walk.count(skipped_);
    return;
  }
  repeats_ = all_.total <= kShortWord ? 1 : std::max<std::uint64_t>(kLongWord / all_.total, 1);
  length_ = repeats_ * all_.total;
  words_ = all_.members.size() == 1 ? 1 : std::clamp<std::uint64_t>(kLetters / length_, 4, 64);
  firsts_.push_back(0);
  for (const Member& member : all_.members) {
    firsts_.push_back(firsts_.back() + static_cast<std::uint32_t>(repeats_ * member.weight));
  }
  made_ = std::make_unique<WordRoom[]>(words_);
}

// ---- words

const Strata::Word& Strata::word(std::uint64_t number) const {
  std::atomic<const Word*>& room = made_[number].made;
  if (const Word* const made = room.load(std::memory_order_acquire)) return *made;
  auto fresh = std::make_unique<const Word>(make_word(number));
  const Word* present = nullptr;
  if (room.compare_exchange_strong(present, fresh.get(), std::memory_order_acq_rel)) return *fresh.release();
  return *present;  // of another thread
}

// The members' letters, each member's in the order of their times, merged.
Strata::Word Strata::make_word(std::uint64_t number) const {
  struct Next {
    std::uint64_t time = 0;  // in 2^-32 of the member's strata
    std::uint64_t width = 0;
    Letter letter;
  };
  constexpr std::uint64_t kStratum = std::uint64_t{1} << 32;
  const auto set_time = [&](Next& next) {
    const std::uint64_t k = next.letter.number;
    const std::uint64_t letters = letters_of(next.letter.member);
    const std::uint64_t jitter = all_.members[next.letter.member].jitter(number * letters + k);
    next.time = (k << 32) + (kStratum - next.width) / 2 + (jitter * next.width >> 32);
  };
  // Letters of one time keep the order of the members.
  const auto is_later = [&](const Next& a, const Next& b) {
    const std::uint64_t left = a.time * all_.members[b.letter.member].weight;
    const std::uint64_t right = b.time * all_.members[a.letter.member].weight;
    return left != right ? left > right : a.letter.member > b.letter.member;
  };
  std::uint64_t least = all_.total;
  for (const Member& member : all_.members) least = std::min(least, member.weight);
  std::vector<Next> next(all_.members.size());
  for (std::uint32_t s = 0; s < next.size(); ++s) {
    const std::uint64_t weight = all_.members[s].weight;
    next[s].width = weight + least >= all_.total ? kStratum : (weight << 32) / (all_.total - least);
    next[s].letter.member = s;
    set_time(next[s]);
  }
  std::make_heap(next.begin(), next.end(), is_later);
  Word made;
  made.letters.reserve(length_);
  made.places.resize(length_);
  while (!next.empty()) {
    std::pop_heap(next.begin(), next.end(), is_later);
    Next& first = next.back();
    made.places[firsts_[first.letter.member] + first.letter.number] = static_cast<std::uint32_t>(made.letters.size());
    made.letters.push_back(first.letter);
    if (++first.letter.number == letters_of(first.letter.member)) {
      next.pop_back();
    } else {
      set_time(first);
      std::push_heap(next.begin(), next.end(), is_later);
    }
  }
  return made;
}

Strata::Turn Strata::turn(std::uint64_t period) const {
  const Key& key = all_.members.front().key;
  return {word(scale64(key.absorb(kWord).at(period), words_)), scale64(key.absorb(kPlace).at(period), length_)};
}

// Letters of a member before a place of a word.
std::uint64_t Strata::before(const Word& word, std::size_t member, std::uint64_t place) const {
  const auto begin = word.places.begin() + firsts_[member];
  const auto end = word.places.begin() + firsts_[member + 1];
  return static_cast<std::uint64_t>(std::lower_bound(begin, end, place) - begin);
}

Slot Strata::slot_at(std::uint64_t position) const {
  const std::uint64_t period = position / length_;
  const Turn begin = turn(period);
  std::uint64_t place = begin.place + (position - period * length_);
  place -= place >= length_ ? length_ : 0;
  const Letter& letter = begin.word.letters[place];
  const std::uint64_t letters = letters_of(letter.member);
  std::uint64_t number = letter.number + letters - before(begin.word, letter.member, begin.place);
  number -= number >= letters ? letters : 0;
  return {period * letters + number, letter.member};
}

// ---- both forms

void Strata::find(std::uint64_t first, std::uint64_t stride, std::span<Slot> out) const {
  if (out.empty()) return;
  if (all_.members.size() == 1) {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = {first + i * stride, 0};
    return;
  }
  if (words_ > 0) {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = slot_at(first + i * stride);
    return;
  }
  StrataWalk walk(all_);
  walk.seek(begin_ + first);
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (i > 0) walk.advance(begin_ + first + i * stride);
    out[i] = walk.slot();
    out[i].number -= skipped(out[i].member);
  }
}

// Of jittered strata: the slot's time is (k + u / 2^32) / w; the slots of member t before it are those of t before w_t
// times that.
std::uint64_t Strata::position_of(const Slot& slot) const {
  const std::uint64_t weight = all_.members[slot.member].weight;
  if (words_ > 0) {
    const std::uint64_t letters = letters_of(slot.member);
    const std::uint64_t period = slot.number / letters;
    const Turn begin = turn(period);
    const std::uint64_t number = (slot.number % letters + before(begin.word, slot.member, begin.place)) % letters;
    const std::uint64_t place = begin.word.places[firsts_[slot.member] + number];
    return period * length_ + (place + length_ - begin.place) % length_;
  }
  const std::uint64_t slot_number = slot.number + skipped(slot.member);
  const std::uint64_t own = all_.members[slot.member].jitter(slot_number);
  std::uint64_t position = slot_number;
  for (std::size_t t = 0; t < all_.members.size(); ++t) {
    if (t == slot.member) continue;
    const Member& other = all_.members[t];
    const Wide product = Wide{slot_number} * other.weight;  // k w_t / w = whole + rest / w
    const auto whole = static_cast<std::uint64_t>(product / weight);
    const auto rest = static_cast<std::uint64_t>(product % weight);
    const Wide parts = (Wide{rest} << 32) + Wide{own} * other.weight;  // … of w 2^32 in a stratum of t
    const Wide stratum = Wide{weight} << 32;
    const std::uint64_t number = whole + static_cast<std::uint64_t>(parts / stratum);
    const Wide left = Wide{other.jitter(number)} * weight;
    const Wide right = parts % stratum;
    position += number + (left < right || (left == right && t < slot.member) ? 1 : 0);
  }
  return position - begin_;
}

void Strata::count(std::uint64_t position, std::span<std::uint64_t> out) const {
  if (words_ > 0) {
    const std::uint64_t period = position / length_;
    const Turn begin = turn(period);
    const std::uint64_t end = begin.place + position % length_;
    for (std::size_t s = 0; s < all_.members.size(); ++s) {
      const std::uint64_t past =
          end < length_ ? before(begin.word, s, end) : letters_of(s) + before(begin.word, s, end - length_);
      out[s] = period * letters_of(s) + past - before(begin.word, s, begin.place);
    }
    return;
  }
  StrataWalk walk(all_);
  walk.seek(begin_ + position);
  walk.count(out);
  for (std::size_t s = 0; s < skipped_.size(); ++s) out[s] -= skipped_[s];
}

}  // namespace penstock::shuffle
