// Any bytes as someone's token file: .npy, llm.c or a bare one, and as Megatron's .idx. What opens can be read as
// windows and as documents; all else is refused with penstock::Error.
#include "core/base/error.h"
#include "core/io/local/local_store.h"
#include "layout/dataset.h"

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

namespace layout = penstock::layout;

namespace {

class Folder {
 public:
  Folder() : path_(std::filesystem::temp_directory_path() / ("penstock-fuzz-" + std::to_string(getpid()))) {
    std::filesystem::create_directories(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  [[nodiscard]] std::string file(const char* name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

void write(const std::string& path, const char* data, std::size_t size) {
  std::ofstream(path, std::ios::binary | std::ios::trunc).write(data, static_cast<std::streamsize>(size));
}

template <typename Open>
void open_and_view(Open open) {
  try {
    const layout::DatasetPtr dataset = open();
    layout::make_windows(dataset, 4, 1);
    layout::make_documents(dataset);
  } catch (const penstock::Error&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Folder folder;
  static const auto local = std::make_shared<penstock::LocalStore>();
  const auto* bytes = reinterpret_cast<const char*>(data);
  write(folder.file("tokens.bin"), bytes, size);
  open_and_view([] { return layout::open_raw({{local, folder.file("tokens.bin")}}, ""); });
  write(folder.file("pair.idx"), bytes, size);
  const std::string tokens(64, '\1');
  write(folder.file("pair.bin"), tokens.data(), tokens.size());
  open_and_view([] { return layout::open_megatron({{local, folder.file("pair")}}); });
  return 0;
}
