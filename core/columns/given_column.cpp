#include "core/columns/given_column.h"

#include "core/base/checked.h"
#include "core/base/error.h"

#include <cstring>
#include <utility>

namespace penstock {
namespace {

class GivenColumn final : public Column {
 public:
  GivenColumn(ScalarType type, std::vector<std::uint64_t> dims)
      : type_(type), dims_(std::move(dims)), row_bytes_(type.bytes) {
    for (const std::uint64_t dim : dims_) {
      row_bytes_ = checked_mul(row_bytes_, dim, "bytes of a row", ErrorKind::InvalidArgument);
    }
  }

  [[nodiscard]] ArrayShape shape(const BatchShape& batch) const override {
    ArrayShape array{.type = type_,
                     .bytes = checked_mul(batch.rows, row_bytes_, "bytes of a column", ErrorKind::InvalidArgument)};
    array.dims.push_back(batch.rows);
    array.dims.insert(array.dims.end(), dims_.begin(), dims_.end());
    return array;
  }
  void fill_row(const Row& /*row*/, const BatchShape& /*batch*/, std::byte* /*out*/) const override {}
  void fill_padding(const BatchShape& batch, std::byte* out) const override {
    std::memset(out + batch.valid * row_bytes_, 0, (batch.rows - batch.valid) * row_bytes_);
  }

 private:
  const ScalarType type_;
  const std::vector<std::uint64_t> dims_;
  std::uint64_t row_bytes_;
};

class GivenMaker final : public ColumnMaker {
 public:
  GivenMaker(ScalarType type, std::vector<std::uint64_t> dims)
      : column_(std::make_shared<GivenColumn>(type, std::move(dims))) {}
  [[nodiscard]] std::shared_ptr<const Column> make(const SourceInfo& /*source*/) const override { return column_; }
  [[nodiscard]] Parts parts() const noexcept override { return Parts::Records; }

 private:
  const std::shared_ptr<const Column> column_;
};

}  // namespace

std::shared_ptr<const ColumnMaker> make_given(ScalarType type, std::vector<std::uint64_t> dims) {
  return std::make_shared<GivenMaker>(type, std::move(dims));
}

}  // namespace penstock
