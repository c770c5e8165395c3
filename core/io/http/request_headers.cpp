#include "core/io/http/request_headers.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>

namespace penstock {
namespace {

std::string_view name_of(std::string_view line) {
  return line.substr(0, line.find(':'));
}

bool is_same_letter(char a, char b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return lower(a) == lower(b);
}

}  // namespace

void RequestHeaders::set_fixed(const std::vector<std::string>& own) {
  lines_ = own;
  // "Accept:" without a value: libcurl sends no such header.
  for (const std::string_view line : {"Accept-Encoding: identity", "User-Agent: penstock", "Accept:"}) {
    const auto has_name = [&](std::string_view each) {
      return std::ranges::equal(name_of(each), name_of(line), is_same_letter);
    };
    if (std::ranges::none_of(own, has_name)) lines_.emplace_back(line);
  }
  lines_.emplace_back();
  nodes_.resize(lines_.size());
  for (std::size_t i = 0; i < lines_.size(); ++i) nodes_[i] = {lines_[i].data(), nullptr};
  for (std::size_t i = 0; i + 2 < lines_.size(); ++i) nodes_[i].next = &nodes_[i + 1];
}

curl_slist* RequestHeaders::whole() noexcept {
  nodes_[nodes_.size() - 2].next = nullptr;
  return nodes_.data();
}

curl_slist* RequestHeaders::range(std::uint64_t begin, std::uint64_t end) {
  std::string& line = lines_.back();
  line.clear();
  fmt::format_to(std::back_inserter(line), "Range: bytes={}-{}", begin, end - 1);
  nodes_.back().data = line.data();
  nodes_[nodes_.size() - 2].next = &nodes_.back();
  return nodes_.data();
}

}  // namespace penstock
