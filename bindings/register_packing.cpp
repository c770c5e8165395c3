// Packed rows and padded ones: tables, made in steps so that Ctrl-C works, views of them, and what their batches have.
#include "bindings/gil.h"
#include "bindings/register.h"
#include "core/base/error.h"
#include "core/columns/column_maker.h"
#include "core/columns/padded.h"
#include "layout/documents/document_lengths.h"
#include "layout/documents/token_documents.h"
#include "layout/packed/pack_table.h"
#include "layout/packed/packed.h"
#include "writer/shards/pack_table_writer.h"

#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace py = pybind11;

namespace penstock::bindings {
namespace {

using layout::Dataset;
using layout::DatasetPacker;
using layout::PackHeader;
using layout::PackingRule;
using layout::PackTable;
using layout::TokenDocuments;
using writer::PackTableWriter;
using Opened = std::shared_ptr<Dataset>;
using RunsUnlocked = py::call_guard<Unlocked>;

PackingRule rule_of(std::uint64_t window, const std::string& fit, std::uint64_t group,
                    const std::string& long_documents, std::uint64_t multiple_of, std::uint64_t max_document,
                    std::uint64_t max_documents, const std::string& fill, std::uint64_t buffer, std::uint64_t refill) {
  PackingRule rule{.window = window,
                   .fit = layout::parse_fit(fit),
                   .group = group,
                   .long_documents = layout::parse_long(long_documents),
                   .multiple_of = multiple_of,
                   .max_document = max_document,
                   .max_documents = max_documents,
                   .fill = layout::parse_fill(fill),
                   .buffer = buffer,
                   .refill = refill};
  layout::check_packing_rule(rule);
  return rule;
}

StoreChoice through(const std::shared_ptr<LocalStore>& local) {
  return read_local_through(local, local->reading_once(1));
}

py::array_t<std::uint64_t> lengths(const Opened& dataset, std::uint64_t first, std::uint64_t count,
                                   const std::shared_ptr<LocalStore>& local) {
  py::array_t<std::uint64_t> out(static_cast<py::ssize_t>(count));
  const std::span<std::uint64_t> to(out.mutable_data(), count);
  const Unlocked released;
  layout::check_has_lengths(*dataset);
  layout::read_document_lengths(*dataset, first, to, through(local));
  return out;
}

void register_token_documents(py::module_& module, const std::shared_ptr<LocalStore>& local) {
  py::class_<TokenDocuments>(module, "TokenDocuments", "Finds a token stream's documents by a token, step by step.")
      .def(py::init(
               [local](const Opened& dataset, const std::string& by, const std::string& field, std::uint64_t token) {
                 return std::make_unique<TokenDocuments>(
                     dataset, layout::TokenRule{by == "end_of_document", field, token}, through(local));
               }),
           py::arg("dataset"), py::arg("by"), py::arg("field"), py::arg("token"))
      .def("step", &TokenDocuments::step, RunsUnlocked(), py::arg("records"),
           "Looks at about as many records; false once all were looked at.")
      .def_property_readonly("found", &TokenDocuments::found)
      .def_property_readonly("first_has", &TokenDocuments::first_has)
      .def_property_readonly("last_has", &TokenDocuments::last_has)
      .def_property_readonly("doubtful", &TokenDocuments::doubtful,
                             "Numbers of shards that begin with the token that ends documents, or the reverse.")
      .def(
          "dataset",
          [](const TokenDocuments& documents) { return std::const_pointer_cast<Dataset>(documents.dataset()); },
          "The stream with its documents, after the last step.");
}

void register_tables(py::module_& module, const std::shared_ptr<LocalStore>& local) {
  py::class_<PackingRule>(module, "PackingRule", "How documents go into rows; see layout/packed/packing.h.")
      .def(py::init(&rule_of), py::kw_only(), py::arg("window"), py::arg("fit"), py::arg("group"),
           py::arg("long_documents"), py::arg("multiple_of"), py::arg("max_document"), py::arg("max_documents"),
           py::arg("fill"), py::arg("buffer"), py::arg("refill"))
      .def_readonly("window", &PackingRule::window)
      .def_property_readonly("fit", [](const PackingRule& rule) { return layout::fit_name(rule.fit); })
      .def_readonly("group", &PackingRule::group)
      .def_property_readonly("long_documents",
                             [](const PackingRule& rule) { return layout::long_name(rule.long_documents); })
      .def_readonly("multiple_of", &PackingRule::multiple_of)
      .def_readonly("max_document", &PackingRule::max_document)
      .def_readonly("max_documents", &PackingRule::max_documents)
      .def_property_readonly("fill", [](const PackingRule& rule) { return layout::fill_name(rule.fill); })
      .def_readonly("buffer", &PackingRule::buffer)
      .def_readonly("refill", &PackingRule::refill);
  py::class_<PackHeader>(module, "PackHeader", "What a pack table says of itself; see layout/packed/pack_table.h.")
      .def_readonly("rule", &PackHeader::rule)
      .def_readonly("fingerprint", &PackHeader::fingerprint)
      .def_readonly("documents", &PackHeader::documents)
      .def_readonly("rows", &PackHeader::rows)
      .def_readonly("pieces", &PackHeader::pieces)
      .def_readonly("records", &PackHeader::records)
      .def_readonly("left_out", &PackHeader::left_out)
      .def_readonly("cut", &PackHeader::cut)
      .def_readonly("where", &PackHeader::where, "What views say of the documents; empty where all are packed.");
  py::class_<PackTable, std::shared_ptr<PackTable>>(module, "PackTable", "Which pieces each packed row has.")
      .def(py::init([local](const std::string& path, const Opened& dataset) {
             const Unlocked released;
             return std::make_shared<PackTable>(open_store(path, local), *dataset);
           }),
           py::arg("path"), py::arg("dataset"))
      .def_property_readonly("header", &PackTable::header);
  py::class_<DatasetPacker>(module, "DatasetPacker", "Packs a dataset's documents in memory, some at a time.")
      .def(py::init([local](const Opened& dataset, const PackingRule& rule,
                            const std::optional<std::shared_ptr<Chosen>>& chosen, std::string where) {
             const Unlocked released;
             return std::make_unique<DatasetPacker>(dataset, rule, through(local), chosen.value_or(nullptr),
                                                    std::move(where));
           }),
           py::arg("dataset"), py::arg("rule"), py::arg("chosen") = py::none(), py::arg("where") = "")
      .def("step", &DatasetPacker::step, RunsUnlocked(), py::arg("documents"),
           "Packs some more; False: all are packed.")
      .def_property_readonly("done", &DatasetPacker::done)
      .def(
          "table",
          [](DatasetPacker& packer) {
            const PackHeader header = packer.header();
            return std::make_shared<PackTable>(header, std::move(packer.rows()));
          },
          "Once, after the last step.");
  py::class_<PackTableWriter>(module, "PackTableWriter", "Packs a dataset's documents into a file, some at a time.")
      .def(py::init([local](const Opened& dataset, const PackingRule& rule, std::string path,
                            const std::optional<std::shared_ptr<Chosen>>& chosen, std::string where) {
             const Unlocked released;
             return std::make_unique<PackTableWriter>(dataset, rule, through(local), std::move(path),
                                                      chosen.value_or(nullptr), std::move(where));
           }),
           py::arg("dataset"), py::arg("rule"), py::arg("path"), py::arg("chosen") = py::none(), py::arg("where") = "")
      .def("step", &PackTableWriter::step, RunsUnlocked(), py::arg("documents"),
           "Packs some more; False: all are packed.")
      .def_property_readonly("done", &PackTableWriter::done)
      .def("commit", &PackTableWriter::commit, RunsUnlocked(), "Finishes the file; what it says of itself.");
}

void register_padded(py::module_& module) {
  py::class_<PaddedField>(module, "PaddedField", "A field's array, padded by the bytes of one of its values.")
      .def(py::init([](std::string field, const std::string& type, const py::bytes& padding) {
             const std::string_view bytes = padding;
             const auto* const first = reinterpret_cast<const std::byte*>(bytes.data());
             return PaddedField{std::move(field), ScalarType::parse(type), {first, first + bytes.size()}};
           }),
           py::kw_only(), py::arg("field"), py::arg("type"), py::arg("padding"));
  module.def(
      "make_padded",
      [](const Padding& padding, std::vector<PaddedField> fields) {
        return std::const_pointer_cast<ColumnMaker>(make_padded({padding, std::move(fields)}));
      },
      py::kw_only(), py::arg("padding"), py::arg("fields"), "Arrays: each field, attention_mask, lengths.");
}

}  // namespace

void register_packing(py::module_& module, const std::shared_ptr<LocalStore>& local) {
  register_token_documents(module, local);
  register_tables(module, local);
  module.attr("MOST_PACKED_AT_OPENING") = layout::kMostPackedAtOpening;
  module.def(
      "document_lengths",
      [local](const Opened& dataset, std::uint64_t first, std::uint64_t count) {
        return lengths(dataset, first, count, local);
      },
      py::arg("dataset"), py::arg("first"), py::arg("count"), "uint64 [count]: records of documents from `first` on.");
  module.def(
      "make_packed",
      [](const Opened& dataset, const std::shared_ptr<PackTable>& table, const std::vector<std::string>& columns,
         std::uint64_t lookahead) {
        return std::const_pointer_cast<Source>(layout::make_packed(dataset, table, columns, lookahead));
      },
      py::arg("dataset"), py::arg("table"), py::arg("columns"), py::arg("lookahead"), "The view of packed rows.");
  register_padded(module);
}

}  // namespace penstock::bindings
