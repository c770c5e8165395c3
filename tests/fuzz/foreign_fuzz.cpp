// Any bytes as files of other formats that are opened in place: what opens is read as windows and documents.
#include "layout/dataset.h"
#include "layout/foreign/token_files.h"
#include "tests/fuzz/read_views.h"

#include <zlib.h>

#include <algorithm>
#include <utility>

namespace penstock::fuzz {
namespace {

const std::string kTokens(256, '\1');  // bytes of a stream
constexpr const char* kU2 = R"([["token","<u2"]])";

/// A store with these files, made anew for each input, since a dataset holds on to its files.
MemoryStorePtr store_of(std::initializer_list<std::pair<const char*, std::string_view>> files) {
  auto store = std::make_shared<testing::MemoryStore>();
  for (const auto& [path, bytes] : files) put(*store, path, bytes);
  return store;
}

template <typename Open>
bool open_and_read(const Open& open, std::uint64_t first) {
  bool some = false;
  accepts([&] { some = read_views(open(), first, 4); });
  return some;
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
  return open_and_read([&] { return layout::open_megatron({{store, "pair"}}); }, input.size());
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

// index.json up to a zero, then the only shard.
bool mds(Input input) {
  const auto [index, shard] = split_at_zero(input);
  const auto store = store_of({{"f/index.json", index}, {"f/shard.00000.mds", view_of(shard)}});
  bool some = false;
  for (const char* dtype : {"", kU2}) {
    some |= open_and_read([&] { return layout::open_mds({{store, "f"}}, "", dtype); }, input.size());
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
