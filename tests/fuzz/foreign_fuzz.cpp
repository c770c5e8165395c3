// Any bytes as files of other formats that are opened in place: what opens is read as windows and documents. Where the
// documents of Megatron and MDS lie is compared with a plain reading of the bytes.
#include "layout/dataset.h"
#include "layout/documents/document_lengths.h"
#include "layout/documents/document_table.h"
#include "layout/foreign/token_files.h"
#include "layout/reading/reads.h"
#include "tests/fuzz/read_views.h"

#include <zlib.h>

#include <algorithm>
#include <utility>

namespace penstock::fuzz {
namespace {

const std::string kTokens(256, '\1');  // bytes of a stream
constexpr const char* kU1 = R"([["token","|u1"]])";
constexpr const char* kU2 = R"([["token","<u2"]])";

/// A store with these files, made anew for each input, since a dataset holds on to its files.
MemoryStorePtr store_of(std::initializer_list<std::pair<const char*, std::string_view>> files) {
  auto store = std::make_shared<testing::MemoryStore>();
  for (const auto& [path, bytes] : files) put(*store, path, bytes);
  return store;
}

template <typename Open, typename Judge>
bool open_and_read(const Open& open, std::uint64_t first, const Judge& judge) {
  bool some = false;
  accepts([&] {
    const layout::DatasetPtr dataset = open();
    judge(*dataset);
    some = read_views(dataset, first, 4);
  });
  return some;
}

template <typename Open>
bool open_and_read(const Open& open, std::uint64_t first) {
  return open_and_read(open, first, [](const layout::Dataset&) {});
}

// Documents follow one another from the first sequence to the last one, each as long as its sequences.
void judge_megatron(Input idx, const layout::Dataset& dataset) {
  const auto sequences = layout::load<std::uint64_t>(&idx[18]);
  const Input lengths = idx.subspan(34);
  const Input documents = lengths.subspan(12 * sequences);
  require(layout::load<std::uint64_t>(documents.data()) == 0, "documents that do not begin at the first sequence");
  std::vector<std::uint64_t> expected(dataset.span_count());
  std::uint64_t sequence = 0;
  for (std::size_t document = 0; document < expected.size(); ++document) {
    const auto stop = layout::load_at<std::uint64_t>(documents.data(), document + 1);
    require(sequence <= stop && stop <= sequences, "documents that do not follow one another");
    for (; sequence < stop; ++sequence) {
      expected[document] += layout::load_at<std::uint32_t>(lengths.data(), sequence);
    }
  }
  require(sequence == sequences, "sequences that are of no document");
  std::vector<std::uint64_t> found(expected.size());
  layout::read_document_lengths(dataset, 0, found, {});
  require(found == expected, "a document that is not as long as its sequences");
}

// The tokens of a sample lie between the places that the shard has for it.
void judge_mds(Input bytes, const layout::Dataset& dataset) {
  for (const layout::Shard& shard : dataset.shards) {
    require(shard.stream.bytes == bytes.size(), "a shard that is another file");
    for (std::uint64_t sample = 0; sample < shard.spans; ++sample) {
      const std::uint64_t begin = layout::load_at<std::uint32_t>(bytes.data(), sample + 1);
      const std::uint64_t end = layout::load_at<std::uint32_t>(bytes.data(), sample + 2);
      const layout::DocumentTable::Document found = shard.table->at(sample);
      require(begin <= found.byte && found.byte <= end && end <= bytes.size(), "a sample outside of its place");
      require(found.tokens <= (end - found.byte) / dataset.stored_record_bytes, "a sample beyond its place");
    }
  }
}

bool open_bare(std::string_view bytes, const char* dtype) {
  return open_and_read(
      [&] {
        return layout::open_raw({{store_of({{"tokens", bytes}}), "tokens"}}, dtype);
      },
      bytes.size());
}

std::string little(std::uint64_t value, std::size_t bytes) {
  std::string out;
  for (std::size_t i = 0; i < bytes; ++i) out.push_back(static_cast<char>(value >> (8 * i)));
  return out;
}

std::string gzipped(std::string_view text) {
  constexpr int kGzip = 15 + 16;
  z_stream stream{};
  require(deflateInit2(&stream, 0, Z_DEFLATED, kGzip, 8, Z_DEFAULT_STRATEGY) == Z_OK, "zlib has no memory");
  std::string out(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  require(deflate(&stream, Z_FINISH) == Z_STREAM_END, "zlib did not end");
  out.resize(out.size() - stream.avail_out);
  deflateEnd(&stream);
  return out;
}

}  // namespace

bool megatron(Input input) {
  const auto store = store_of({{"pair.idx", view_of(input)}, {"pair.bin", kTokens}});
  return open_and_read(
      [&] {
        return layout::open_megatron({{store, "pair"}});
      },
      input.size(), [&](const layout::Dataset& dataset) { judge_megatron(input, dataset); });
}

// As .index, beside it a .loss; or as .metadata.
bool ds_index(Input input) {
  const std::size_t kind = take_choice(input, 3);
  const auto store = store_of({{"t.ds", kTokens}});
  put(*store, kind == 2 ? "t.ds.metadata" : "t.ds.index", input);
  if (kind == 1) put(*store, "t.ds.loss", kTokens.substr(0, kTokens.size() / 2));
  return open_and_read([&] { return layout::open_datatrove({{store, "t.ds"}}, ""); }, input.size());
}

// The file as it is; and up to a zero as the text of a header whose magic and length are right.
bool npy(Input input) {
  bool some = open_bare(view_of(input), "") || open_bare(view_of(input), kU2);
  const auto [header, values] = split_at_zero(input);
  if (header.size() <= UINT16_MAX) {
    std::string whole = std::string("\x93NUMPY\1\0", 8) + little(header.size(), 2) + header + text_of(values);
    some |= open_bare(whole, "");
  }
  return some;
}

// The file as it is; and its first bytes as version, count and values behind a magic.
bool llm_c(Input input) {
  const bool some = open_bare(view_of(input), "");
  constexpr std::uint64_t kMagics[] = {20240520, 20240801, 20240522};
  std::string whole = little(kMagics[take_choice(input, 3)], 4);
  const std::size_t head = std::min<std::size_t>(input.size(), 8);
  whole.append(view_of(input.first(head))).resize(1024);
  whole.append(view_of(input.subspan(head)));
  return open_bare(whole, "") || some;
}

// index.json up to a zero, then the only chunk.
bool litdata(Input input) {
  const auto [index, chunk] = split_at_zero(input);
  const auto store = store_of({{"f/index.json", index}, {"f/chunk-0-0.bin", view_of(chunk)}});
  return open_and_read([&] { return layout::open_litdata({{store, "f"}}); }, input.size());
}

// index.json up to a zero, then the only shard; bytes are tokens of u1 or u2, by the input's size.
bool mds(Input input) {
  const auto [index, shard] = split_at_zero(input);
  const auto store = store_of({{"f/index.json", index}, {"f/shard.00000.mds", view_of(shard)}});
  bool some = false;
  for (const char* dtype : {"", input.size() % 2 == 0 ? kU1 : kU2}) {
    some |= open_and_read(
        [&] {
          return layout::open_mds({{store, "f"}}, "", dtype);
        },
        input.size(), [bytes = shard](const layout::Dataset& dataset) { judge_mds(bytes, dataset); });
  }
  return some;
}

// OLMo's list of documents: as it is packed; or its text, which is packed here.
bool olmo_gzip(Input input) {
  const bool is_text = take_choice(input, 2) == 1;
  const auto store = store_of({{"t.npy", kTokens}});
  put(*store, "t.csv.gz", is_text ? gzipped(view_of(input)) : text_of(input));
  return open_and_read([&] { return layout::open_olmo({{store, "t.npy"}}, kU2); }, input.size());
}

}  // namespace penstock::fuzz
