// The limit that reading over HTTP is held against: one thread, one multi handle of libcurl, random ranges of one file
// into reused buffers, so many requests under way, and nothing else.
// Prints one line of JSON.
//   curl_loop URL FILE_BYTES RANGE_BYTES IN_FLIGHT SECONDS
#include <curl/curl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

struct transfer {
  CURL* handle;
  char* buffer;
  size_t got, size;
};

static uint64_t random_u64(uint64_t* state) {  // SplitMix64 (Steele, Lea, Flood 2014)
  uint64_t z = (*state += 0x9E3779B97F4A7C15u);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static double cpu(void) {
  struct rusage used;
  getrusage(RUSAGE_SELF, &used);
  return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
         1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

static size_t on_body(char* data, size_t size, size_t count, void* self) {
  struct transfer* const transfer = self;
  if (transfer->got + size * count > transfer->size) return 0;
  memcpy(transfer->buffer + transfer->got, data, size * count);
  transfer->got += size * count;
  return size * count;
}

static void begin(CURLM* multi, struct transfer* transfer, uint64_t ranges, uint64_t* state) {
  char range[64];
  const uint64_t at = random_u64(state) % ranges * transfer->size;
  snprintf(range, sizeof range, "%llu-%llu", (unsigned long long)at, (unsigned long long)(at + transfer->size - 1));
  transfer->got = 0;
  curl_easy_setopt(transfer->handle, CURLOPT_RANGE, range);
  curl_multi_add_handle(multi, transfer->handle);
}

int main(int count, char** given) {
  if (count != 6) return 2;
  const uint64_t size = strtoull(given[3], NULL, 10);
  const uint64_t ranges = strtoull(given[2], NULL, 10) / size;
  const long in_flight = strtol(given[4], NULL, 10);
  const double seconds = strtod(given[5], NULL);
  uint64_t state = 1, done = 0;
  curl_global_init(CURL_GLOBAL_DEFAULT);
  CURLM* const multi = curl_multi_init();
  curl_multi_setopt(multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, in_flight);
  curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, in_flight);
  for (long i = 0; i < in_flight; ++i) {
    struct transfer* const transfer = calloc(1, sizeof *transfer);
    transfer->handle = curl_easy_init();
    transfer->buffer = malloc(size);
    transfer->size = size;
    curl_easy_setopt(transfer->handle, CURLOPT_URL, given[1]);
    curl_easy_setopt(transfer->handle, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(transfer->handle, CURLOPT_BUFFERSIZE, 65536L);
    curl_easy_setopt(transfer->handle, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(transfer->handle, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(transfer->handle, CURLOPT_WRITEDATA, transfer);
    curl_easy_setopt(transfer->handle, CURLOPT_PRIVATE, transfer);
    begin(multi, transfer, ranges, &state);
  }
  double begun = 0, used = 0;  // once all connections are made
  const double first = now();
  while (begun == 0 || now() - begun < seconds) {
    int running = 0, left = 0;
    curl_multi_perform(multi, &running);
    for (CURLMsg* said; (said = curl_multi_info_read(multi, &left)) != NULL;) {
      struct transfer* transfer = NULL;
      curl_easy_getinfo(said->easy_handle, CURLINFO_PRIVATE, (char**)&transfer);
      if (said->data.result != CURLE_OK || transfer->got != size) {
        fprintf(stderr, "curl_loop: %s, %zu bytes\n", curl_easy_strerror(said->data.result), transfer->got);
        return 1;
      }
      curl_multi_remove_handle(multi, transfer->handle);
      begin(multi, transfer, ranges, &state);
      ++done;
    }
    if (begun == 0 && now() - first > 0.5) {
      begun = now();
      used = cpu();
      done = 0;
    }
    curl_multi_poll(multi, NULL, 0, 100, NULL);
  }
  const double took = now() - begun;
  printf("{\"ranges\": %llu, \"seconds\": %.6f, \"cpu\": %.6f}\n", (unsigned long long)done, took, cpu() - used);
  return 0;
}
