// The limit that penstock is held against: threads that pread random windows into reused buffers, and nothing else.
// One file, `threads` threads, `batches` buffers of `rows` windows each, filled one after the other by whichever thread
// comes by. Prints one line of JSON.
//   pread_loop FILE WINDOW_BYTES ROWS BATCHES THREADS SECONDS [SEED]
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static struct {
  int file;
  uint64_t window_bytes, windows, rows, batches, seed;
  char* buffers;
  atomic_uint_fast64_t next;  // batch to be filled
  atomic_uint_fast64_t done;  // windows read
  atomic_bool stop;
} loop;

static uint64_t random_u64(uint64_t* state) {  // SplitMix64 (Steele, Lea, Flood 2014)
  uint64_t z = (*state += 0x9E3779B97F4A7C15u);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

static void read_window(uint64_t window, char* out) {
  uint64_t done = 0;
  while (done < loop.window_bytes) {
    const ssize_t got =
        pread(loop.file, out + done, loop.window_bytes - done, (off_t)(window * loop.window_bytes + done));
    if (got <= 0) {
      perror("pread");
      exit(1);
    }
    done += (uint64_t)got;
  }
}

static void* work(void* unused) {
  while (!atomic_load_explicit(&loop.stop, memory_order_relaxed)) {
    const uint64_t batch = atomic_fetch_add(&loop.next, 1);
    uint64_t state = loop.seed + batch * 0xD1342543DE82EF95u;
    char* out = loop.buffers + batch % loop.batches * loop.rows * loop.window_bytes;
    for (uint64_t row = 0; row < loop.rows; ++row) {
      read_window(random_u64(&state) % loop.windows, out + row * loop.window_bytes);
    }
    atomic_fetch_add(&loop.done, loop.rows);
  }
  return unused;
}

static double seconds_of(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void sleep_for(double seconds) {
  const struct timespec time = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
  nanosleep(&time, NULL);
}

int main(int argc, char** argv) {
  if (argc < 7) {
    fprintf(stderr, "usage: %s FILE WINDOW_BYTES ROWS BATCHES THREADS SECONDS [SEED]\n", argv[0]);
    return 2;
  }
  loop.window_bytes = strtoull(argv[2], NULL, 10);
  loop.rows = strtoull(argv[3], NULL, 10);
  loop.batches = strtoull(argv[4], NULL, 10);
  const int threads = atoi(argv[5]);
  const double seconds = atof(argv[6]);
  loop.seed = argc > 7 ? strtoull(argv[7], NULL, 10) : 1;
  struct stat status;
  loop.file = open(argv[1], O_RDONLY | O_CLOEXEC);
  if (loop.file < 0 || fstat(loop.file, &status) != 0) {
    perror(argv[1]);
    return 1;
  }
  posix_fadvise(loop.file, 0, 0, POSIX_FADV_RANDOM);
  loop.windows = (uint64_t)status.st_size / loop.window_bytes;
  const uint64_t bytes = loop.batches * loop.rows * loop.window_bytes;
  loop.buffers = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  if (loop.windows == 0 || threads < 1 || threads > 256 || loop.buffers == NULL) {
    fprintf(stderr, "%s: %lld bytes are no window of %llu, or %d threads\n", argv[1], (long long)status.st_size,
            (unsigned long long)loop.window_bytes, threads);
    return 1;
  }
  pthread_t running[256];
  for (int i = 0; i < threads; ++i) pthread_create(&running[i], NULL, work, NULL);
  sleep_for(seconds / 8);  // the buffers' pages are there now
  const uint64_t before = atomic_load(&loop.done);
  const double begin = seconds_of(CLOCK_MONOTONIC);
  const double cpu_begin = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
  sleep_for(seconds);
  const uint64_t windows = atomic_load(&loop.done) - before;
  const double taken = seconds_of(CLOCK_MONOTONIC) - begin;
  const double cpu = seconds_of(CLOCK_PROCESS_CPUTIME_ID) - cpu_begin;
  atomic_store(&loop.stop, true);
  for (int i = 0; i < threads; ++i) pthread_join(running[i], NULL);
  printf("{\"windows\": %llu, \"seconds\": %.6f, \"cpu_seconds\": %.6f}\n", (unsigned long long)windows, taken, cpu);
  return 0;
}
