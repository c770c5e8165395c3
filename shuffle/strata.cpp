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

Strata::Strata(std::vector<Member> members) : all_{std::move(members)} {
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
    return;
  }
  repeats_ = all_.total <= kShortWord ? 1 : std::max<std::uint64_t>(kLongWord / all_.total, 1);
  length_ = repeats_ * all_.total;
  words_ = all_.members.size() == 1 ? 1 : std::clamp<std::uint64_t>(kLetters / length_, 4, 64);
  firsts_.push_back(0);
  for (const Member& member : all_.members) {
    firsts_.push_back(firsts_.back() + static_cast<std::uint32_t>(repeats_ * member.weight));
  }
  for (std::uint64_t number = 0; number < words_; ++number) make_word(number);
}

// ---- words

void Strata::make_word(std::uint64_t number) {
  std::uint64_t least = all_.total;
  for (const Member& member : all_.members) least = std::min(least, member.weight);
  std::vector<std::pair<std::uint64_t, Letter>> timed;  // the time, in 2^-32 of the member's strata
  for (std::uint32_t s = 0; s < all_.members.size(); ++s) {
    const Member& member = all_.members[s];
    constexpr std::uint64_t kStratum = std::uint64_t{1} << 32;
    const std::uint64_t width =
        member.weight + least >= all_.total ? kStratum : (member.weight << 32) / (all_.total - least);
    const std::uint64_t letters = repeats_ * member.weight;
    for (std::uint32_t k = 0; k < letters; ++k) {
      const std::uint64_t offset = (kStratum - width) / 2 + (member.jitter(number * letters + k) * width >> 32);
      timed.push_back({(std::uint64_t{k} << 32) + offset, {s, k}});
    }
  }
  // Letters of one time keep the order of the members.
  std::stable_sort(timed.begin(), timed.end(), [&](const auto& a, const auto& b) {
    return a.first * all_.members[b.second.member].weight < b.first * all_.members[a.second.member].weight;
  });
  places_.resize(places_.size() + length_);
  for (std::uint32_t place = 0; place < length_; ++place) {
    const Letter& letter = letters_.emplace_back(timed[place].second);
    places_[number * length_ + firsts_[letter.member] + letter.number] = place;
  }
}

Strata::Turn Strata::turn(std::uint64_t period) const {
  const Key& key = all_.members.front().key;
  return {scale64(key.absorb(kWord).at(period), words_), scale64(key.absorb(kPlace).at(period), length_)};
}

// Letters of a member before a place of a word.
std::uint64_t Strata::before(std::uint64_t word, std::size_t member, std::uint64_t place) const {
  const auto places = places_.begin() + static_cast<std::ptrdiff_t>(word * length_);
  const auto begin = places + firsts_[member];
  return static_cast<std::uint64_t>(std::lower_bound(begin, places + firsts_[member + 1], place) - begin);
}

Slot Strata::slot_at(std::uint64_t position) const {
  const std::uint64_t period = position / length_;
  const Turn begin = turn(period);
  std::uint64_t place = begin.place + (position - period * length_);
  place -= place >= length_ ? length_ : 0;
  const Letter& letter = letters_[begin.word * length_ + place];
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
  walk.seek(first);
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (i > 0) walk.advance(first + i * stride);
    out[i] = walk.slot();
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
    const std::uint64_t place = places_[begin.word * length_ + firsts_[slot.member] + number];
    return period * length_ + (place + length_ - begin.place) % length_;
  }
  const std::uint64_t own = all_.members[slot.member].jitter(slot.number);
  std::uint64_t position = slot.number;
  for (std::size_t t = 0; t < all_.members.size(); ++t) {
    if (t == slot.member) continue;
    const Member& other = all_.members[t];
    const Wide product = Wide{slot.number} * other.weight;  // k w_t / w = whole + rest / w
    const auto whole = static_cast<std::uint64_t>(product / weight);
    const auto rest = static_cast<std::uint64_t>(product % weight);
    const Wide parts = (Wide{rest} << 32) + Wide{own} * other.weight;  // … of w 2^32 in a stratum of t
    const Wide stratum = Wide{weight} << 32;
    const std::uint64_t number = whole + static_cast<std::uint64_t>(parts / stratum);
    const Wide left = Wide{other.jitter(number)} * weight;
    const Wide right = parts % stratum;
    position += number + (left < right || (left == right && t < slot.member) ? 1 : 0);
  }
  return position;
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
  walk.seek(position);
  walk.count(out);
}

}  // namespace penstock::shuffle
