#include "layout/dataset/sealed_json.h"

#include "core/base/crc32c.h"
#include "core/base/error.h"

#include <span>

namespace penstock::layout {
namespace {

constexpr std::string_view kBefore = "\n  \"crc32c\": \"";
constexpr std::string_view kZeros = "00000000";
constexpr std::string_view kAfter = "\"\n}\n";

std::uint32_t crc_of(std::string_view text, std::uint32_t crc = 0) {
  return crc32c(std::as_bytes(std::span(text)), crc);
}

}  // namespace

std::string seal_json(std::string body) {
  body += kBefore;
  const std::size_t at = body.size();
  body.append(kZeros).append(kAfter);
  body.replace(at, kZeros.size(), fmt::format("{:08x}", crc_of(body)));
  return body;
}

void check_seal(std::string_view text, const std::string& what) {
  constexpr std::size_t kSeal = kBefore.size() + kZeros.size() + kAfter.size();
  const bool sealed = text.size() > kSeal && text.substr(text.size() - kSeal, kBefore.size()) == kBefore &&
                      text.substr(text.size() - kAfter.size()) == kAfter;
  if (!sealed) {
    raise(ErrorKind::Corruption, "{}: {} bytes that do not end with \"crc32c\"; the file is cut or is not penstock's",
          what, with_commas(text.size()));
  }
  const std::size_t at = text.size() - kAfter.size() - kZeros.size();
  const std::string_view said = text.substr(at, kZeros.size());
  const std::uint32_t crc = crc_of(kAfter, crc_of(kZeros, crc_of(text.substr(0, at))));
  if (said != fmt::format("{:08x}", crc)) {
    raise(ErrorKind::Corruption, "{}: its bytes have CRC32C {:08x}, its last line says {}", what, crc, excerpt(said));
  }
}

}  // namespace penstock::layout
