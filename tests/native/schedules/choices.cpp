#include "tests/native/schedules/choices.h"

#include <algorithm>
#include <sstream>
#include <string>
#include <utility>

namespace penstock::schedules {

const char* word_of(Step::Kind kind) noexcept {
  switch (kind) {
    case Step::Kind::Begin: return "begins";
    case Step::Kind::Lock: return "locks";
    case Step::Kind::Load: return "loads";
    case Step::Kind::Store: return "stores";
    case Step::Kind::Register: return "is about to wait for";
    case Step::Kind::Wait: return "has waited for";
    case Step::Kind::Notify: return "notifies";
    case Step::Kind::Join: return "joins";
    case Step::Kind::Sleep: return "has slept";
    case Step::Kind::Submit: return "submits to";
    case Step::Kind::Collect: return "collects from";
    case Step::Kind::Wake: return "wakes";
    case Step::Kind::Complete: return "completes a read of";
  }
  return "?";
}

bool are_independent(const Step& a, const Step& b) noexcept {
  if (a.object != b.object || a.object == nullptr) return true;
  return a.kind == Step::Kind::Load && b.kind == Step::Kind::Load;
}

std::uint64_t Numbers::next() noexcept {
  state_ += 0x9e3779b97f4a7c15;
  std::uint64_t mixed = state_;
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
  return mixed ^ (mixed >> 31);
}

// --- random

RandomChoices::RandomChoices(std::uint64_t seed) : numbers_(seed) {
  by_priority_ = numbers_.happens(3);
  stays_ = numbers_.one_of({1U, 2U, 4U, 8U, 16U, 32U});
  change_ = numbers_.one_of({16U, 64U, 256U});
  early_ = numbers_.one_of({0U, 0U, 256U, 64U, 8U});
}

std::int64_t RandomChoices::priority(int id) {
  id = std::min(id, kStorage);
  for (const auto& [known, value] : priorities_) {
    if (known == id) return value;
  }
  return priorities_.emplace_back(id, static_cast<std::int64_t>(numbers_.below(1'000))).second;
}

void RandomChoices::lower(int id) {
  static_cast<void>(priority(id));
  for (auto& [known, value] : priorities_) {
    if (known == id) value = --lowest_;
  }
}

void RandomChoices::yielded(int id) {
  if (by_priority_) lower(id);
}

std::size_t RandomChoices::highest(std::span<const Turn> turns) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < turns.size(); ++i) {
    if (priority(turns[i].id) > priority(turns[best].id)) best = i;
  }
  return best;
}

std::size_t RandomChoices::turn(std::span<const Turn> turns) {
  if (turns.size() == 1) return 0;
  const auto is_read = [](const Turn& turn) { return turn.id >= kStorage; };
  const auto reads = static_cast<std::size_t>(std::count_if(turns.begin(), turns.end(), is_read));
  const std::size_t threads = turns.size() - reads;
  std::size_t chosen = 0;
  if (by_priority_) {
    for (const Turn& turn : turns) {
      if (turn.is_present && numbers_.happens(change_)) lower(turn.id);
    }
    chosen = highest(turns);
  } else {
    for (std::size_t i = 0; i < threads; ++i) {
      if (turns[i].is_present && numbers_.below(stays_) > 0) return i;
    }
    chosen = numbers_.below(threads + (reads > 0 ? 1 : 0));
  }
  return chosen < threads ? chosen : threads + numbers_.below(reads);
}

// --- all of them

DepthFirst::Node DepthFirst::node_of(std::span<const Turn> turns) const {
  Node node;
  const auto present = std::find_if(turns.begin(), turns.end(), [](const Turn& turn) { return turn.is_present; });
  const auto add = [&](std::size_t number) {
    const Turn& turn = turns[number];
    const bool sleeps = most_ == kUnbounded && std::any_of(asleep_.begin(), asleep_.end(),
                                                           [&](const auto& other) { return other.first == turn.id; });
    if (sleeps) return;
    node.turns.push_back(turn);
    node.given.push_back(number);
  };
  if (present != turns.end()) add(static_cast<std::size_t>(present - turns.begin()));
  for (std::size_t i = 0; i < turns.size(); ++i) {
    if (!turns[i].is_present) add(i);
  }
  node.count = node.turns.size();
  return node;
}

std::size_t DepthFirst::follow(const Node& node) {
  const Turn& taken = node.turns[node.at];
  if (most_ == kUnbounded) {
    for (std::size_t i = 0; i < node.at; ++i) asleep_.emplace_back(node.turns[i].id, node.turns[i].step);
    std::erase_if(asleep_, [&](const auto& other) { return !are_independent(other.second, taken.step); });
  } else if (!taken.is_present && node.turns.front().is_present) {
    ++interruptions_;
  }
  return node.given[node.at];
}

std::size_t DepthFirst::turn(std::span<const Turn> turns) {
  if (redundant_) return 0;
  if (most_ != kUnbounded) {  // nothing to choose
    if (turns.size() == 1) return 0;
    const auto present = std::find_if(turns.begin(), turns.end(), [](const Turn& turn) { return turn.is_present; });
    if (present != turns.end() && interruptions_ == most_) return static_cast<std::size_t>(present - turns.begin());
  }
  if (depth_ == path_.size()) {
    Node node = node_of(turns);
    if (node.count == 0) {
      redundant_ = true;
      return 0;
    }
    if (depth_ < replayed_.size()) node.at = replayed_[depth_];
    path_.push_back(std::move(node));
  }
  Node& node = path_[depth_++];
  for (std::size_t i = 0; i < node.count; ++i) node.turns[i] = turns[node.given[i]];  // objects lie elsewhere this time
  return follow(node);
}

std::size_t DepthFirst::pick(std::size_t count) {
  if (redundant_ || count <= 1) return 0;
  if (depth_ == path_.size()) {
    path_.push_back({{}, {}, count, depth_ < replayed_.size() ? replayed_[depth_] : 0});
  }
  return path_[depth_++].at;
}

bool DepthFirst::next() {
  depth_ = 0;
  interruptions_ = 0;
  asleep_.clear();
  redundant_ = false;
  replayed_.clear();
  while (!path_.empty() && path_.back().at + 1 >= path_.back().count) path_.pop_back();
  if (path_.empty()) return false;
  ++path_.back().at;
  return true;
}

// Runs of the first alternative are counted: "0x17" is 17 of them.
std::string DepthFirst::text() const {
  std::ostringstream out;
  std::size_t zeros = 0;
  for (const Node& node : path_) {
    if (node.at == 0) {
      ++zeros;
      continue;
    }
    if (zeros > 0) out << "0x" << zeros << ",";
    zeros = 0;
    out << node.at << ",";
  }
  std::string text = out.str();
  if (!text.empty()) text.pop_back();
  return text.empty() ? "0x0" : text;
}

void DepthFirst::replay(const std::string& text) {
  std::istringstream in(text);
  for (std::string item; std::getline(in, item, ',');) {
    if (item.starts_with("0x")) {
      replayed_.insert(replayed_.end(), std::stoul(item.substr(2)), 0);
    } else {
      replayed_.push_back(std::stoul(item));
    }
  }
}

}  // namespace penstock::schedules
