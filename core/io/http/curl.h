// Curl: the system's libcurl, loaded when something is first read over HTTP.
//
// penstock neither links nor bundles it: security updates of it and its TLS are the system's. Any thread.
#pragma once

#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>

#include <string>

namespace penstock {

/// The functions of libcurl that are used here.
struct Curl {
  decltype(&curl_easy_init) easy_init;
  decltype(&curl_easy_cleanup) easy_cleanup;
  decltype(&curl_easy_setopt) easy_setopt;
  decltype(&curl_easy_getinfo) easy_getinfo;
  decltype(&curl_easy_strerror) easy_strerror;
  decltype(&curl_multi_init) multi_init;
  decltype(&curl_multi_cleanup) multi_cleanup;
  decltype(&curl_multi_setopt) multi_setopt;
  decltype(&curl_multi_add_handle) multi_add_handle;
  decltype(&curl_multi_remove_handle) multi_remove_handle;
  decltype(&curl_multi_assign) multi_assign;
  decltype(&curl_multi_socket_action) multi_socket_action;
  decltype(&curl_multi_info_read) multi_info_read;
  // Null before 7.76, which is given the text of an address.
  decltype(&curl_url) url;
  decltype(&curl_url_set) url_set;
  decltype(&curl_url_cleanup) url_cleanup;
};

/// Throws InvalidArgument where the system has no libcurl, or one that is older than 7.61: says which package has it.
const Curl& curl();

/// Why curl() throws; empty where it does not.
std::string curl_refusal();

}  // namespace penstock
