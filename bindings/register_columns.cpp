// Specifications of columns, by the names that core/columns/column_spec.h gives their parts.
#include "bindings/register.h"
#include "core/base/error.h"
#include "core/columns/column_spec.h"
#include "core/columns/fill_in_the_middle.h"
#include "core/columns/span_corruption.h"

#include <pybind11/stl.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace py = pybind11;

namespace penstock::bindings {
namespace {

// Python's words, in the order of the enumerations.
constexpr std::array<std::string_view, 4> kSequences = {"cu_seqlens", "max_seqlen", "position_ids", "document_ids"};
constexpr std::array<std::string_view, 3> kBounds = {"spans", "end_of_document", "begin_of_document"};

template <typename Enum, std::size_t N>
Enum parse_word(const std::array<std::string_view, N>& words, std::string_view word, const char* refusal) {
  for (std::size_t i = 0; i < N; ++i) {
    if (words[i] == word) return static_cast<Enum>(i);
  }
  raise(ErrorKind::InvalidArgument, "{} {}", refusal, word);
}

void register_bounds(py::module_& module) {
  py::class_<DocumentBounds>(module, "DocumentBounds",
                             "Where the documents of a row begin: by spans, or by the token that ends or begins each.")
      .def(py::init([](std::string_view by, std::string field, std::int64_t value) {
             return DocumentBounds{parse_word<DocumentBounds::By>(kBounds, by, "nothing bounds documents by"),
                                   std::move(field), value};
           }),
           py::kw_only(), py::arg("by") = "spans", py::arg("field") = "", py::arg("value") = 0)
      .def_property_readonly(
          "by", [](const DocumentBounds& bounds) { return kBounds.at(static_cast<std::size_t>(bounds.by)); })
      .def_readonly("value", &DocumentBounds::value);
  py::class_<Padding>(module, "Padding", "Makes rectangles of documents: length 0 is that of the batch's longest.")
      .def(py::init([](std::uint64_t length, std::uint64_t multiple_of, bool left) {
             return Padding{length, multiple_of, left};
           }),
           py::kw_only(), py::arg("length"), py::arg("multiple_of"), py::arg("left"));
}

void register_middle(py::module_& module) {
  py::class_<FillInTheMiddleSpec>(module, "FillInTheMiddleSpec", "How pieces of documents are rearranged in rows.")
      .def(py::init([](std::string field, std::int64_t prefix, std::int64_t middle, std::int64_t suffix, double rate,
                       double spm_rate, DocumentBounds bounds, std::optional<std::int64_t> first_stays,
                       std::optional<std::int64_t> last_stays, std::uint64_t seed) {
             return FillInTheMiddleSpec{std::move(field),  prefix,      middle,     suffix, rate, spm_rate,
                                        std::move(bounds), first_stays, last_stays, seed};
           }),
           py::kw_only(), py::arg("field"), py::arg("prefix"), py::arg("middle"), py::arg("suffix"), py::arg("rate"),
           py::arg("spm_rate"), py::arg("bounds"), py::arg("first_stays"), py::arg("last_stays"), py::arg("seed"))
      .def_readonly("field", &FillInTheMiddleSpec::field);
}

// After ColumnMaker, which it gives.
void register_corruption(py::module_& module) {
  module.def(
      "make_span_corruption",
      [](std::string field, const std::string& type, double density, double mean_length,
         std::vector<std::int64_t> sentinels, std::optional<std::int64_t> end, std::int64_t pad, std::uint64_t seed) {
        return std::const_pointer_cast<ColumnMaker>(make_span_corruption(
            {std::move(field), ScalarType::parse(type), density, mean_length, std::move(sentinels), end, pad, seed}));
      },
      py::kw_only(), py::arg("field"), py::arg("type"), py::arg("density"), py::arg("mean_length"),
      py::arg("sentinels"), py::arg("end"), py::arg("pad"), py::arg("seed"), "Arrays: inputs, labels, attention_mask.");
}

}  // namespace

void register_columns(py::module_& module) {
  register_corruption(module);
  register_bounds(module);
  register_middle(module);
  py::class_<FieldSpec>(module, "FieldSpec", "A field's values as `type`, without its first `skip` records.")
      .def(py::init([](std::string name, std::string field, const std::string& type, std::uint64_t skip,
                       std::uint64_t shorten, bool labels) {
             return FieldSpec{std::move(name), std::move(field), ScalarType::parse(type), skip, shorten, labels};
           }),
           py::kw_only(), py::arg("name"), py::arg("field"), py::arg("type"), py::arg("skip") = 0,
           py::arg("shorten") = 0, py::arg("labels") = false)
      .def_readonly("name", &FieldSpec::name)
      .def_property_readonly("type", [](const FieldSpec& spec) { return spec.type.str(); });
  py::class_<SequenceSpec>(module, "SequenceSpec", "An array of the sequences in a batch, by its name.")
      .def(py::init([](std::string_view name, std::uint64_t shorten, const DocumentBounds& bounds,
                       std::optional<std::uint64_t> max_documents) {
             return SequenceSpec{parse_word<SequenceSpec::Kind>(kSequences, name, "there is no computed column"),
                                 shorten, bounds, max_documents};
           }),
           py::kw_only(), py::arg("name"), py::arg("shorten"), py::arg("bounds"), py::arg("max_documents"))
      .def_property_readonly(
          "name", [](const SequenceSpec& spec) { return kSequences.at(static_cast<std::size_t>(spec.kind)); })
      .def_readonly("bounds", &SequenceSpec::bounds);
  py::class_<TargetSpec>(module, "TargetSpec", "Which targets count: labels that are -100 elsewhere, and loss_mask.")
      .def(py::init([](bool mask, std::uint64_t shorten, std::vector<std::string> fields, bool cross_document,
                       DocumentBounds bounds) {
             return TargetSpec{.mask = mask,
                               .shorten = shorten,
                               .fields = std::move(fields),
                               .cross_document = cross_document,
                               .bounds = std::move(bounds)};
           }),
           py::kw_only(), py::arg("mask") = false, py::arg("shorten") = 0,
           py::arg("fields") = std::vector<std::string>(), py::arg("cross_document") = true,
           py::arg_v("bounds", DocumentBounds(), "DocumentBounds()"))
      .def("copy", [](const TargetSpec& spec) { return spec; })
      .def_readwrite("labels", &TargetSpec::labels)
      .def_readonly("mask", &TargetSpec::mask)
      .def_readwrite("cross_document", &TargetSpec::cross_document)
      .def_readwrite("bounds", &TargetSpec::bounds)
      .def_readwrite("padding", &TargetSpec::padding);
  py::class_<PerSpanSpec>(module, "PerSpanSpec", "A value of each span, for all its records; `fill` by its bytes.")
      .def(py::init([](std::string name, const std::string& type, std::uint64_t fill, std::uint64_t shorten) {
             return PerSpanSpec{std::move(name), ScalarType::parse(type), fill, shorten};
           }),
           py::kw_only(), py::arg("name"), py::arg("type"), py::arg("fill"), py::arg("shorten"))
      .def("copy", [](const PerSpanSpec& spec) { return spec; })
      .def_readonly("name", &PerSpanSpec::name)
      .def_property_readonly("type", [](const PerSpanSpec& spec) { return spec.type.str(); })
      .def_readwrite("padding", &PerSpanSpec::padding);
}

}  // namespace penstock::bindings
