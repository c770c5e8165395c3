// The limit that the writer is held against: one thread that writes one file, as penstock's writer does, and nothing
// else. Calls of AT_ONCE bytes out of 16 MiB of tokens below 2^17, as writing.py has them. "cached": through the page
// cache, with room asked for 16 MiB ahead and writing begun every 8 MiB, as writer/files/output_file.cpp has it.
// "direct": past the page cache (O_DIRECT), with the same room. Both end with fsync. Prints one line of JSON.
//   write_loop FILE BYTES AT_ONCE cached|direct
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { kAlignment = 4096, kSource = 16 << 20, kRoom = 16 << 20, kStartEvery = 8 << 20 };

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

static void fail(const char* what) {
  perror(what);
  exit(1);
}

static void write_all(int file, const char* from, uint64_t bytes) {
  while (bytes > 0) {
    const ssize_t wrote = write(file, from, bytes);
    if (wrote <= 0) fail("write");
    from += wrote;
    bytes -= (uint64_t)wrote;
  }
}

int main(int count, char** given) {
  if (count != 5) {
    fprintf(stderr, "usage: write_loop FILE BYTES AT_ONCE cached|direct\n");
    return 2;
  }
  const uint64_t at_once = strtoull(given[3], NULL, 10);
  const int direct = strcmp(given[4], "direct") == 0;
  if (at_once == 0 || at_once % kAlignment != 0 || kSource % at_once != 0) {
    fprintf(stderr, "write_loop: AT_ONCE has to divide 16 MiB and be a multiple of 4,096\n");
    return 2;
  }
  const uint64_t bytes = strtoull(given[2], NULL, 10) / at_once * at_once;
  char* source = aligned_alloc(kAlignment, kSource);
  if (source == NULL) fail("aligned_alloc");
  uint64_t state = 5;
  for (uint64_t i = 0; i < kSource / 4; ++i) ((uint32_t*)(void*)source)[i] = (uint32_t)(random_u64(&state) >> 47);

  const double begin = now();
  const int file = open(given[1], O_WRONLY | O_CREAT | O_EXCL | (direct ? O_DIRECT : 0), 0644);
  if (file < 0) fail("open");
  uint64_t room = 0;
  for (uint64_t done = 0; done < bytes; done += at_once) {
    if (done + at_once > room) {  // a refusal is no error: not every file system has it
      if (fallocate(file, FALLOC_FL_KEEP_SIZE, (off_t)room, kRoom) == 0) room += kRoom;
    }
    write_all(file, source + done % kSource, at_once);
    const uint64_t end = done + at_once;
    if (!direct && end % kStartEvery == 0) {
      (void)sync_file_range(file, (off_t)(end - kStartEvery), kStartEvery, SYNC_FILE_RANGE_WRITE);
    }
  }
  if (room > bytes && ftruncate(file, (off_t)bytes) != 0) fail("ftruncate");
  if (fsync(file) != 0) fail("fsync");
  if (close(file) != 0) fail("close");
  printf("{\"bytes\": %llu, \"seconds\": %.9f}\n", (unsigned long long)bytes, now() - begin);
  free(source);
  return 0;
}
