#include "core/base/json.h"

#include "core/base/error.h"

#include <nlohmann/json.hpp>

#include <set>
#include <utility>
#include <vector>

namespace penstock {
namespace {

using nlohmann::json;

[[noreturn]] void refuse_second(const std::string& what, std::string_view key) {
  raise(ErrorKind::Corruption, "{}: the key \"{}\" stands twice in one object", what, excerpt(key));
}

void empty(json& value) noexcept {
  if (value.is_array()) {
    auto& array = value.get_ref<json::array_t&>();
    for (json& each : array) empty(each);
    array.clear();
  } else if (value.is_object()) {
    auto& object = value.get_ref<json::object_t&>();
    for (auto& [key, each] : object) empty(each);
    object.clear();
  }
}

void check_depth(std::size_t open, const std::string& what) {
  if (open < kMaxJsonDepth) return;
  raise(ErrorKind::Corruption, "{}: JSON nested more than {} deep", what, kMaxJsonDepth);
}

// What both readers below have in common: the types that nlohmann's parser asks for, and what it refuses itself.
class Strict {
 public:
  using number_integer_t = json::number_integer_t;
  using number_unsigned_t = json::number_unsigned_t;
  using number_float_t = json::number_float_t;
  using string_t = json::string_t;
  using binary_t = json::binary_t;

  explicit Strict(const std::string& what) : what_(what) {}

  static bool binary(binary_t& /*value*/) { return false; }  // not in JSON text

  // nlohmann's message quotes the text, which may be no UTF-8: only the place is told.
  bool parse_error(std::size_t position, const std::string& /*token*/, const nlohmann::detail::exception& error) {
    raise(ErrorKind::Corruption, "{}: {} at byte {}", what_,
          error.id == 406 ? "a number beyond the range of a double" : "not valid JSON", with_commas(position));
  }

 protected:
  [[nodiscard]] const std::string& what() const noexcept { return what_; }

 private:
  const std::string& what_;
};

// Builds the value and refuses on the way what nlohmann's own parser lets through: a second use of a key, and depth.
class Builder : public Strict {
 public:
  using Strict::Strict;

  bool null() { return add(json(nullptr)); }
  bool boolean(bool value) { return add(json(value)); }
  bool number_integer(number_integer_t value) { return add(json(value)); }
  bool number_unsigned(number_unsigned_t value) { return add(json(value)); }
  bool number_float(number_float_t value, const string_t& /*text*/) { return add(json(value)); }
  bool string(string_t& value) { return add(json(std::move(value))); }
  bool start_object(std::size_t /*size*/) { return open(json::object()); }
  bool start_array(std::size_t /*size*/) { return open(json::array()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }

  bool key(string_t& name) {
    const auto [at, fresh] = open_.back()->get_ref<json::object_t&>().emplace(std::move(name), nullptr);
    if (!fresh) refuse_second(what(), at->first);
    member_ = &at->second;
    return true;
  }

  json take() { return std::move(root_); }

 private:
  json* place(json&& value) {
    if (open_.empty()) return &(root_ = std::move(value));
    if (open_.back()->is_object()) return &(*member_ = std::move(value));
    auto& array = open_.back()->get_ref<json::array_t&>();
    return &array.emplace_back(std::move(value));
  }
  bool add(json&& value) {
    place(std::move(value));
    return true;
  }
  bool open(json&& value) {
    check_depth(open_.size(), what());
    open_.push_back(place(std::move(value)));
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  json root_;
  const JsonGuard guard_{root_};
  std::vector<json*> open_;  // the containers being filled; only the last one grows, so the pointers stay valid
  json* member_ = nullptr;   // where the value of the key just read goes
};

// Refuses the same, and keeps nothing but the keys of the objects that are open.
class Checker : public Strict {
 public:
  using Strict::Strict;

  static bool null() { return true; }
  static bool boolean(bool /*value*/) { return true; }
  static bool number_integer(number_integer_t /*value*/) { return true; }
  static bool number_unsigned(number_unsigned_t /*value*/) { return true; }
  static bool number_float(number_float_t /*value*/, const string_t& /*text*/) { return true; }
  static bool string(string_t& /*value*/) { return true; }
  bool start_object(std::size_t /*size*/) { return open(); }
  bool start_array(std::size_t /*size*/) { return open(); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }

  bool key(string_t& name) {
    if (++key_count_ > kMaxJsonOpenKeys) {
      raise(ErrorKind::Corruption, "{}: an object of more than {} keys", what(), with_commas(kMaxJsonOpenKeys));
    }
    const auto [at, fresh] = open_.back().insert(std::move(name));
    if (!fresh) refuse_second(what(), *at);
    return true;
  }

 private:
  bool open() {
    check_depth(open_.size(), what());
    open_.emplace_back();
    return true;
  }
  bool close() {
    key_count_ -= open_.back().size();
    open_.pop_back();
    return true;
  }

  std::vector<std::set<std::string>> open_;
  std::size_t key_count_ = 0;  // of all of them
};

// nlohmann's parser copies a string or a number several times before it is seen here.
void check_tokens(std::string_view text, const std::string& what) {
  if (text.size() <= kMaxJsonTokenBytes) return;
  std::size_t begin = 0;  // of the token under way
  bool is_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (i - begin > kMaxJsonTokenBytes) {
      raise(ErrorKind::Corruption, "{}: more than {} bytes of JSON without a separator at byte {}", what,
            with_commas(kMaxJsonTokenBytes), with_commas(begin));
    }
    if (is_string && c == '\\') {
      ++i;
    } else if (c == '"') {
      is_string = !is_string;
      begin = i;
    } else if (!is_string && std::string_view(" \t\r\n,:[]{}").find(c) != std::string_view::npos) {
      begin = i + 1;
    }
  }
}

template <typename Reader>
void read(std::string_view text, const std::string& what, std::size_t max_bytes, Reader& reader) {
  if (text.size() > max_bytes) {
    raise(ErrorKind::Corruption, "{}: {} bytes of JSON, at most {} are accepted", what, with_commas(text.size()),
          with_commas(max_bytes));
  }
  check_tokens(text, what);
  json::sax_parse(text.begin(), text.end(), &reader);
}

}  // namespace

JsonGuard::~JsonGuard() {
  empty(value_);
}

json parse_json_strict(std::string_view text, const std::string& what, std::size_t max_bytes) {
  Builder builder(what);
  read(text, what, max_bytes, builder);
  return builder.take();
}

void check_json_strict(std::string_view text, const std::string& what, std::size_t max_bytes) {
  Checker checker(what);
  read(text, what, max_bytes, checker);
}

const json* find_member(const json& object, std::string_view key, const std::string& what) {
  if (!object.is_object()) {
    raise(ErrorKind::Corruption, "{}: {} where an object with \"{}\" was expected", what, object.type_name(), key);
  }
  const auto at = object.find(key);
  return at == object.end() ? nullptr : &*at;
}

const json& get_member(const json& object, std::string_view key, const std::string& what) {
  if (const json* found = find_member(object, key, what)) return *found;
  raise(ErrorKind::Corruption, "{}: \"{}\" is missing", what, key);
}

std::uint64_t as_u64(const json& value, const std::string& what) {
  if (value.is_number_unsigned()) return value.get<std::uint64_t>();
  if (value.is_number_integer() && value.get<std::int64_t>() >= 0) return value.get<std::uint64_t>();
  raise(ErrorKind::Corruption, "{} is {}, an integer from 0 to 2^64 - 1 was expected", what,
        value.is_number() ? value.dump() : value.type_name());
}

std::uint64_t get_u64(const json& object, std::string_view key, const std::string& what) {
  const json& value = get_member(object, key, what);
  if (value.is_number_unsigned()) return value.get<std::uint64_t>();
  return as_u64(value, fmt::format("{}: \"{}\"", what, key));
}

std::string get_string(const json& object, std::string_view key, const std::string& what) {
  const json& value = get_member(object, key, what);
  if (value.is_string()) return value.get<std::string>();
  raise(ErrorKind::Corruption, "{}: \"{}\" is {}, a string was expected", what, key, value.type_name());
}

bool get_bool(const json& object, std::string_view key, const std::string& what) {
  const json& value = get_member(object, key, what);
  if (value.is_boolean()) return value.get<bool>();
  raise(ErrorKind::Corruption, "{}: \"{}\" is {}, true or false was expected", what, key, value.type_name());
}

const json& get_object(const json& object, std::string_view key, const std::string& what) {
  const json& value = get_member(object, key, what);
  if (value.is_object()) return value;
  raise(ErrorKind::Corruption, "{}: \"{}\" is {}, an object was expected", what, key, value.type_name());
}

const json& get_array(const json& object, std::string_view key, const std::string& what) {
  const json& value = get_member(object, key, what);
  if (value.is_array()) return value;
  raise(ErrorKind::Corruption, "{}: \"{}\" is {}, an array was expected", what, key, value.type_name());
}

}  // namespace penstock
