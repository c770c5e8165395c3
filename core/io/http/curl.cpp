#include "core/io/http/curl.h"

#include "core/base/error.h"

#include <dlfcn.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <string>

namespace penstock {
namespace {

constexpr const char* kAdvice =
    "http:// and https:// are read by the system's libcurl: install it (Debian and Ubuntu: libcurl4, Fedora: libcurl)";

// The oldest that was tried (scripts/wheel). All that is used is there, but for parsed addresses.
constexpr unsigned kOldest = 0x073d00;
constexpr unsigned kParsed = 0x074c00;  // 7.76: 7.63 has it, but its first versions were not tried

struct Loaded {
  Curl functions{};
  std::string refusal;
};

template <typename Function>
void find(void* library, const char* name, Function& out) {
  void* const symbol = ::dlsym(library, name);
  if (symbol == nullptr) throw std::runtime_error(name);
  out = reinterpret_cast<Function>(symbol);
}

void find_all(void* library, Curl& out) {
  decltype(&curl_global_init) global_init = nullptr;
  decltype(&curl_version_info) version_info = nullptr;
  find(library, "curl_version_info", version_info);
  const curl_version_info_data* const version = version_info(CURLVERSION_NOW);
  if (version->version_num < kOldest) throw std::runtime_error(fmt::format("it is version {}", version->version));
  find(library, "curl_global_init", global_init);
  find(library, "curl_easy_init", out.easy_init);
  find(library, "curl_easy_cleanup", out.easy_cleanup);
  find(library, "curl_easy_setopt", out.easy_setopt);
  find(library, "curl_easy_getinfo", out.easy_getinfo);
  find(library, "curl_easy_strerror", out.easy_strerror);
  find(library, "curl_multi_init", out.multi_init);
  find(library, "curl_multi_cleanup", out.multi_cleanup);
  find(library, "curl_multi_setopt", out.multi_setopt);
  find(library, "curl_multi_add_handle", out.multi_add_handle);
  find(library, "curl_multi_remove_handle", out.multi_remove_handle);
  find(library, "curl_multi_assign", out.multi_assign);
  find(library, "curl_multi_socket_action", out.multi_socket_action);
  find(library, "curl_multi_info_read", out.multi_info_read);
  if (version->version_num >= kParsed) {
    find(library, "curl_url", out.url);
    find(library, "curl_url_set", out.url_set);
    find(library, "curl_url_cleanup", out.url_cleanup);
  }
  if (global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) throw std::runtime_error("it does not start");
}

Loaded load() {
  Loaded result;
  // The names of OpenSSL's build and GnuTLS's. Never closed: its TLS leaves handlers behind.
  for (const char* name : std::array{"libcurl.so.4", "libcurl-gnutls.so.4"}) {
    void* const library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      const std::string why = ::dlerror();
      const bool is_missing = why.find(std::strerror(ENOENT)) != std::string::npos;
      if (!result.refusal.empty()) continue;
      result.refusal = is_missing ? fmt::format("there is no {} on this machine. {}", name, kAdvice)
                                  : fmt::format("{} cannot be loaded: {}. {}", name, why, kAdvice);
      continue;
    }
    try {
      find_all(library, result.functions);
      result.refusal.clear();
      return result;
    } catch (const std::runtime_error& error) {
      result.refusal = fmt::format("{} of this machine will not do ({}). {}", name, error.what(), kAdvice);
    }
  }
  return result;
}

struct Library {
  std::mutex mutex;
  bool is_tried = false;
  Loaded loaded;  // as it is, once there is no refusal
};

// A refusal is not kept: there may be memory for it the next time.
Library& library() {
  static Library once;
  return once;
}

std::string refusal_of(Library& library) {
  const std::lock_guard lock(library.mutex);
  if (!library.is_tried || !library.loaded.refusal.empty()) library.loaded = load();
  library.is_tried = true;
  return library.loaded.refusal;
}

}  // namespace

const Curl& curl() {
  Library& kept = library();
  if (const std::string refusal = refusal_of(kept); !refusal.empty()) raise(ErrorKind::InvalidArgument, "{}", refusal);
  return kept.loaded.functions;
}

std::string curl_refusal() {
  return refusal_of(library());
}

}  // namespace penstock
