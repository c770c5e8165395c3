#include "layout/values/category_union.h"

#include "core/base/error.h"

namespace penstock::layout {

std::shared_ptr<const UnionCodes> CategoryUnion::add(const CategoriesPtr& table) {
  std::shared_ptr<const UnionCodes>& known = known_[table.get()];  // most shards share one
  if (known) return known;
  if (known_.size() == 1) {
    is_one_ = true;
  } else {
    is_one_ = is_one_ && *table == names_;
  }
  auto codes = std::make_shared<UnionCodes>();
  for (const std::string& name : *table) {
    const auto [found, is_new] = numbers_.try_emplace(name, static_cast<std::int32_t>(names_.size()));
    if (is_new) names_.push_back(name);
    if (names_.size() > INT32_MAX) raise(ErrorKind::Corruption, "more categories than int32 counts");
    codes->push_back(found->second);
  }
  return known = std::move(codes);
}

}  // namespace penstock::layout
