// The writer for Python: packed records and encoded entries come in as bytes-like objects; dtypes, range checks and
// codecs are the business of penstock._make.writer.
#include "bindings/gil.h"
#include "bindings/processes.h"
#include "bindings/register.h"
#include "bindings/tell_python.h"
#include "core/base/error.h"
#include "core/base/fork_count.h"
#include "core/io/local/local_store.h"
#include "core/rows/schema.h"
#include "layout/dataset/folder.h"
#include "layout/dataset/format.h"
#include "layout/dataset/manifest.h"
#include "writer/derived/annotate.h"
#include "writer/derived/append.h"
#include "writer/derived/combine.h"
#include "writer/derived/convert.h"
#include "writer/derived/joining.h"
#include "writer/files/stream_input.h"
#include "writer/folder/commit.h"
#include "writer/folder/run.h"
#include "writer/folder/unnamed.h"
#include "writer/shards/dataset_writer.h"
#include "writer/verify/verify.h"

#include <pybind11/numpy.h>
#include <pybind11/stl.h>
#include <pybind11/typing.h>

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace py = pybind11;

namespace penstock::bindings {
namespace {

using writer::Bytes;
using writer::DatasetWriter;
using WriterNumbers = py::array_t<std::uint64_t, py::array::c_style | py::array::forcecast>;

Bytes bytes_of(const py::buffer_info& info) {
  return {static_cast<const std::byte*>(info.ptr), static_cast<std::size_t>(info.size * info.itemsize)};
}

std::span<const std::uint64_t> numbers_of(const WriterNumbers& numbers) {
  return {numbers.data(), static_cast<std::size_t>(numbers.size())};
}

// (values, names) of each column: of a category codes of these names.
using Columns = std::vector<std::pair<py::buffer, layout::Categories>>;
struct HeldValues {
  explicit HeldValues(const Columns& columns) {
    for (const auto& [column, names] : columns) {
      infos.push_back(column.request());
      values.values.push_back(bytes_of(infos.back()));
      values.names.push_back(names);
    }
  }
  std::vector<py::buffer_info> infos;
  writer::NamedValues values;
};

// A DatasetWriter, which is for one thread, behind a mutex: Python's threads may share it, and each call is whole. The
// GIL is let go before the mutex is taken, since its holder may wait for the disk.
class PythonWriter {
 public:
  PythonWriter(const std::string& path, writer::WriterOptions options) : writer_(path, std::move(options)) {}

  template <typename Use>
  auto use(const Use& use) {
    const Unlocked released;
    if (fork_count() != forks_) return use(writer_);  // it refuses; another thread may have held the mutex
    const std::lock_guard lock(mutex_);
    return use(writer_);
  }

 private:
  const std::uint64_t forks_ = fork_count();
  std::mutex mutex_;
  DatasetWriter writer_;
};

// Frees the writer without the GIL: its destructor removes files.
struct WithoutGil {
  void operator()(PythonWriter* writer) const {
    const Unlocked released;
    delete writer;
  }
};
using OwnedWriter = std::unique_ptr<PythonWriter, WithoutGil>;

// (names, columns as JSON, categories of each, values of each, what is kept beside them as JSON)
using FeatureTuple = std::tuple<std::vector<std::string>, std::string, std::vector<layout::Categories>,
                                std::vector<py::buffer>, std::string>;

std::optional<writer::FeatureTable> table_of(const std::optional<FeatureTuple>& given) {
  if (!given) return std::nullopt;
  const auto& [names, columns, categories, values, task] = *given;
  writer::FeatureTable features{names, {}, categories, {}, task};
  if (columns != "[]") features.columns = layout::parse_column_types(columns);
  for (const py::buffer& column : values) {
    const py::buffer_info info = column.request();
    const Bytes bytes = bytes_of(info);
    features.values.emplace_back(bytes.begin(), bytes.end());
  }
  return features;
}

OwnedWriter make_writer(const std::string& path, const std::string& mode, const std::string& layout,
                        const std::string& fields, const std::string& codec, std::uint64_t shard_bytes,
                        const std::string& tokenizer, const std::string& task, std::optional<std::uint64_t> shard,
                        std::optional<std::string> run, bool overwrite, const std::string& columns,
                        std::vector<layout::Categories> categories, const std::optional<FeatureTuple>& features) {
  writer::WriterOptions options;
  options.format.mode = mode;
  options.format.layout = layout;
  if (mode != layout::kModeOpaque) options.format.schema = Schema::parse(fields);
  options.format.codec_json = codec;
  if (columns != "[]") options.format.columns = layout::parse_column_types(columns);
  options.categories = std::move(categories);
  options.features = table_of(features);
  options.shard_bytes = shard_bytes;
  options.tokenizer_json = tokenizer;
  options.task_json = task;
  options.shard = shard;
  options.run = std::move(run);
  options.overwrite = overwrite;
  const Unlocked released;
  return OwnedWriter(new PythonWriter(path, std::move(options)));
}

void append(PythonWriter& self, const py::buffer& records, const std::optional<py::bytes>& entry,
            const Columns& columns) {
  const HeldValues held(columns);
  const py::buffer_info info = records.request();
  std::optional<Bytes> span;
  if (entry) span = std::as_bytes(std::span(std::string_view(*entry)));
  self.use([&](DatasetWriter& writer) { writer.append(bytes_of(info), span, held.values); });
}

void append_batch(PythonWriter& self, const py::buffer& records, const WriterNumbers& lengths,
                  const py::buffer& entries, const WriterNumbers& entry_ends, const Columns& columns) {
  const HeldValues held(columns);
  const py::buffer_info info = records.request();
  const py::buffer_info entry_info = entries.request();
  const Bytes entry_bytes = bytes_of(entry_info);
  self.use([&](DatasetWriter& writer) {
    writer.append_batch(bytes_of(info), numbers_of(lengths), entry_bytes, numbers_of(entry_ends), held.values);
  });
}

void append_ids(PythonWriter& self, const py::buffer& records, const WriterNumbers& ids) {
  const py::buffer_info info = records.request();
  self.use([&](DatasetWriter& writer) { writer.append_ids(bytes_of(info), numbers_of(ids)); });
}

using OpenedDataset = std::shared_ptr<layout::Dataset>;

void append_stream(PythonWriter& self, const OpenedDataset& from, std::uint64_t first, const WriterNumbers& lengths) {
  self.use([&](DatasetWriter& writer) { writer.append_stream(*from, first, numbers_of(lengths)); });
}

std::pair<std::uint64_t, bool> append_cut(PythonWriter& self, const OpenedDataset& from, std::uint64_t begin,
                                          std::uint64_t end, std::uint64_t token, bool ends_document, bool is_open) {
  return self.use([&](DatasetWriter& writer) {
    const DatasetWriter::CutPart part = writer.append_cut(*from, begin, end, {token, ends_document}, is_open);
    return std::pair(part.documents, part.is_open);
  });
}

std::uint64_t add_entry(PythonWriter& self, const py::bytes& entry, const Columns& columns) {
  const HeldValues held(columns);
  const Bytes bytes = std::as_bytes(std::span(std::string_view(entry)));
  return self.use([&](DatasetWriter& writer) { return writer.entry(bytes, held.values); });
}

void register_dataset_writer(py::module_& module) {
  module.def(
      "can_stream", [](const OpenedDataset& from) { return writer::StreamInput::can_read(*from, from->schema); },
      py::arg("dataset").none(false), "Whether DatasetWriter.append_stream can take records of it.");
  py::class_<PythonWriter, OwnedWriter>(module, "DatasetWriter", "What penstock.Writer writes with.")
      .def(py::init(&make_writer), py::kw_only(), py::arg("path"), py::arg("mode"), py::arg("layout"),
           py::arg("fields"), py::arg("codec"), py::arg("shard_bytes"), py::arg("tokenizer"), py::arg("task"),
           py::arg("shard"), py::arg("run"), py::arg("overwrite"), py::arg("columns"), py::arg("categories"),
           py::arg("features"))
      .def("append", &append, py::arg("records"), py::arg("entry"), py::arg("columns"))
      .def("append_batch", &append_batch, py::arg("records"), py::arg("lengths"), py::arg("entries"),
           py::arg("entry_ends"), py::arg("columns"))
      .def(
          "can_append",
          [](PythonWriter& self, const OpenedDataset& from) {
            return self.use([&](const DatasetWriter& writer) { return writer.can_append(*from); });
          },
          py::arg("dataset").none(false))
      .def("append_stream", &append_stream, py::arg("dataset").none(false), py::arg("first"), py::arg("lengths"))
      .def("append_cut", &append_cut, py::arg("dataset").none(false), py::arg("begin"), py::arg("end"),
           py::arg("token"), py::arg("ends_document"), py::arg("is_open"),
           "(documents that began, whether the last one goes on).")
      .def("append_ids", &append_ids, py::arg("records"), py::arg("ids"))
      .def("entry", &add_entry, py::arg("entry"), py::arg("columns"))
      .def(
          "set_task",
          [](PythonWriter& self, const std::string& task) {
            self.use([&](DatasetWriter& writer) { writer.set_task(task); });
          },
          py::arg("task"))
      .def("commit", [](PythonWriter& self) { return self.use([](DatasetWriter& writer) { return writer.commit(); }); })
      .def("abort", [](PythonWriter& self) { self.use([](DatasetWriter& writer) { writer.abort(); }); })
      .def("leave", [](PythonWriter& self) { self.use([](DatasetWriter& writer) { writer.leave(); }); })
      .def_property_readonly(
          "has_failed",
          [](PythonWriter& self) { return self.use([](const DatasetWriter& writer) { return writer.has_failed(); }); })
      .def_property_readonly(
          "records",
          [](PythonWriter& self) { return self.use([](const DatasetWriter& writer) { return writer.records(); }); })
      .def_property_readonly("finished_shards", [](PythonWriter& self) {
        return self.use([](const DatasetWriter& writer) { return writer.finished_shards(); });
      });
}

// "Report(ok: 3 shards, 1,000 records, 10 entries, 4,096 bytes)", or with problems and the first of them.
std::string describe_report(const writer::VerifyReport& report) {
  const auto counted = [](std::uint64_t count, const char* one, const char* many) {
    return fmt::format("{} {}", with_commas(count), count == 1 ? one : many);
  };
  const std::string found = report.ok()
                                ? std::string("ok")
                                : fmt::format("{}, the first of them {}",
                                              counted(report.problems.size() + report.unlisted, "problem", "problems"),
                                              report.problems.front());
  return fmt::format("Report({}: {}, {}, {}, {})", found, counted(report.shards, "shard", "shards"),
                     counted(report.records, "record", "records"), counted(report.entries, "entry", "entries"),
                     counted(report.bytes, "byte read", "bytes read"));
}

// Texts that may have the names of files, which are any bytes.
py::typing::List<py::str> texts(const std::vector<std::string>& from) {
  py::typing::List<py::str> list;
  for (const std::string& text : from) {
    PyObject* decoded = PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace");
    if (decoded == nullptr) throw py::error_already_set();
    list.append(py::reinterpret_steal<py::object>(decoded));
  }
  return list;
}

void register_verify(py::module_& module) {
  py::class_<writer::VerifyReport>(module, "Report", "What verify() read and found; true if nothing is wrong.")
      .def_readonly("shards", &writer::VerifyReport::shards)
      .def_readonly("records", &writer::VerifyReport::records)
      .def_readonly("entries", &writer::VerifyReport::entries)
      .def_readonly("bytes", &writer::VerifyReport::bytes, "Bytes read and checked.")
      .def_readonly("fingerprint", &writer::VerifyReport::fingerprint, "Hex; empty if the manifest cannot be read.")
      .def_property_readonly(
          "problems", [](const writer::VerifyReport& report) { return texts(report.problems); },
          "What is wrong, each with its file and byte; empty if nothing is. At most 1,000.")
      .def_readonly("unlisted", &writer::VerifyReport::unlisted, "Problems beyond those.")
      .def_property(
          "notices", [](const writer::VerifyReport& report) { return texts(report.notices); },
          [](writer::VerifyReport& report, std::vector<std::string> notices) { report.notices = std::move(notices); },
          "Folders that the manifest does not name, with what to do; no problems.")
      .def_property_readonly("ok", &writer::VerifyReport::ok)
      .def("__bool__", &writer::VerifyReport::ok)
      .def("__repr__", &describe_report);
  module.def(
      "verify",
      [](const std::string& path, const py::object& progress, const std::optional<std::shared_ptr<ByteStore>>& store) {
        Unlocked released;
        return writer::verify(path, tell_python(released, progress), store ? store->get() : nullptr);
      },
      py::arg("path"), py::arg("progress") = py::none(), py::arg("store") = py::none());
}

// (type as JSON of a list of one, categories, whether these are declared, values)
using NewColumnTuple = std::tuple<std::string, layout::Categories, bool, py::buffer>;

std::string annotate(const std::string& path, const std::vector<NewColumnTuple>& columns,
                     const std::vector<std::string>& removed, const py::object& progress) {
  std::vector<py::buffer_info> held;
  std::vector<writer::NewColumn> added;
  for (const auto& [type, categories, declared, values] : columns) {
    held.push_back(values.request());
    added.push_back({layout::parse_column_types(type).at(0), categories, declared, bytes_of(held.back())});
  }
  Unlocked released;
  return writer::annotate(path, added, removed, tell_python(released, progress));
}

std::string append_shards(const std::string& path, const std::vector<std::string>& more, bool resume,
                          const py::object& progress) {
  Unlocked released;
  return writer::append(path, more, resume, tell_python(released, progress));
}

void register_unnamed(py::module_& module) {
  module.def(
      "unnamed",
      [](const std::string& path) {
        LocalStore files;
        return writer::describe_unnamed(path, layout::read_manifest(files, path));
      },
      py::arg("path"), py::call_guard<Unlocked>(),
      "What lies in a dataset's folder though its manifest does not name it: a text for each kind, with what to do.");
}

using RunsUnlocked = py::call_guard<Unlocked>;

void register_commit(py::module_& module) {
  py::class_<writer::FinishedShard>(module, "FinishedShard", "A finished shard, as its shard.json says.")
      .def_readonly("number", &writer::FinishedShard::number)
      .def_readonly("records", &writer::FinishedShard::records)
      .def_readonly("spans", &writer::FinishedShard::spans)
      .def_readonly("entries", &writer::FinishedShard::entries)
      .def_readonly("bytes", &writer::FinishedShard::bytes, "Of its files, without the side files.")
      .def_readonly("task_json", &writer::FinishedShard::task_json)
      .def_readonly("files", &writer::FinishedShard::files, "(name, size) of each, side files with them.");
  module.def("finished_shards", &writer::finished_shards, py::arg("path"), py::arg("overwrite"), RunsUnlocked());
  module.def(
      "commit",
      [](const std::string& path, const std::string& tokenizer, std::optional<std::uint64_t> shards, bool overwrite,
         const std::optional<std::vector<std::string>>& tasks, const std::optional<std::string>& run,
         const std::optional<FeatureTuple>& features, const std::optional<std::vector<std::uint64_t>>& numbers) {
        const std::optional<writer::FeatureTable> table = table_of(features);
        const Unlocked released;
        return writer::commit(path, tokenizer, shards, overwrite, tasks, run, table, numbers);
      },
      py::arg("path"), py::arg("tokenizer"), py::arg("shards"), py::arg("overwrite"), py::arg("tasks"), py::arg("run"),
      py::arg("features") = py::none(), py::arg("numbers") = py::none());
  module.def(
      "describe_shard",
      [](const py::bytes& text, const std::string& path, std::uint64_t number) {
        return writer::describe_shard(std::string(text), path, number);
      },
      py::arg("shard_json"), py::arg("path"), py::arg("number"), "What a shard.json says, which `path` names.");
  module.def(
      "stored_manifest",
      [](const std::string& path, const std::vector<std::pair<std::string, py::bytes>>& shards,
         const std::string& tokenizer, const std::optional<std::vector<std::string>>& tasks,
         const std::optional<std::pair<std::string, std::string>>& features) {
        std::vector<writer::StoredShard> stored;
        stored.reserve(shards.size());
        for (const auto& [name, text] : shards) stored.push_back({name, std::string(text)});
        std::optional<layout::FeaturesInfo> info;
        if (features) info = {features->first, features->second};
        const Unlocked released;
        return writer::stored_manifest(path, stored, tokenizer, tasks, info);
      },
      py::arg("path"), py::arg("shards"), py::arg("tokenizer"), py::arg("tasks"), py::arg("features"),
      "The dataset.json of shards of an object store, (name, shard.json) each; features as (folder, fingerprint).");
}

void register_folder(py::module_& module) {
  module.def(
      "write_features",
      [](const std::string& path, const FeatureTuple& features) {
        const std::optional<writer::FeatureTable> table = table_of(features);
        const Unlocked released;
        return writer::write_features(path, *table);
      },
      py::arg("path"), py::arg("features"), "A dataset of them alone; its fingerprint.");
  module.def("remove_shards", &writer::remove_shards, py::arg("path"), py::arg("numbers"), py::arg("overwrite"),
             py::arg("run"), RunsUnlocked());
  module.def("clean", &writer::clean, py::arg("path"), py::arg("overwrite"), py::arg("run"), RunsUnlocked(),
             "Removes what writers left unfinished.");
  module.def(
      "check_features",
      [](const FeatureTuple& features) {
        const std::optional<writer::FeatureTable> table = table_of(features);
        const Unlocked released;
        writer::check_features(*table);
      },
      py::arg("features"), "Refuses features that no writer takes.");
  module.def(
      "check_columns",
      [](const std::string& columns, const std::vector<layout::Categories>& categories) {
        if (columns != "[]") layout::check_categories(layout::parse_column_types(columns), categories);
      },
      py::arg("columns"), py::arg("categories"), RunsUnlocked(), "Refuses columns (as JSON) that no writer takes.");
  module.def("unique_run", &writer::unique_run, "A name for a run of its own.");
  py::class_<writer::Run>(module, "Run", "Holds a folder for one run, with all its processes.")
      .def(py::init<const std::string&, const std::string&>(), py::arg("path"), py::arg("run"), RunsUnlocked())
      .def("close", &writer::Run::close, RunsUnlocked());
}

void register_derived(py::module_& module) {
  module.def(
      "combine",
      [](const std::vector<std::string>& inputs, const std::string& out, bool resume, bool overwrite,
         const py::object& progress) {
        Unlocked released;
        return writer::combine(inputs, out, resume, overwrite, tell_python(released, progress));
      },
      py::arg("inputs"), py::arg("out"), py::arg("resume"), py::arg("overwrite"), py::arg("progress"));
  module.def(
      "joined_tokenizer",
      [](bool appends, const std::vector<std::string>& paths, const std::vector<py::bytes>& texts) {
        std::vector<layout::Manifest> manifests;
        for (std::size_t i = 0; i < texts.size(); ++i) {
          manifests.push_back(layout::parse_manifest(std::string(texts[i]), paths.at(i)));
        }
        const Unlocked released;
        const auto joining = appends ? writer::Joining::Append : writer::Joining::Combine;
        return writer::joined_tokenizer(joining, paths, manifests);
      },
      py::arg("appends"), py::arg("paths"), py::arg("manifests"),
      "The tokenizer of datasets of these dataset.json that become one, as JSON; InvalidArgumentError: they cannot.");
  module.def("append", &append_shards, py::arg("path"), py::arg("more"), py::arg("resume"), py::arg("progress"));
  module.def("annotate", &annotate, py::arg("path"), py::arg("columns"), py::arg("removed"), py::arg("progress"));
  module.def("convert", &writer::convert, py::arg("path"), py::arg("out"), py::arg("layout"), py::arg("overwrite"),
             RunsUnlocked());
}

}  // namespace

void register_writer(py::module_& module) {
  register_dataset_writer(module);
  register_verify(module);
  register_unnamed(module);
  register_commit(module);
  register_folder(module);
  register_derived(module);
  register_processes(module);
}

}  // namespace penstock::bindings
