// What penstock's compressed sparse rows are held against: one thread that gathers random cells from mapped records
// {gene u16, count u16} into int32 genes, float32 counts and int32 offsets, batch after batch, and nothing else. Each
// cell comes once an epoch. Prints one line of JSON.
//   gather_loop STREAM STARTS ROWS BATCHES SECONDS [SEED]     STARTS: u64 [cells + 1], records before each cell
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct record {
  uint16_t gene, count;
};

struct batch {
  int32_t *genes, *offsets;
  float* counts;
};

static const void* mapped(const char* path, uint64_t* bytes) {
  const int file = open(path, O_RDONLY);
  struct stat status;
  if (file < 0 || fstat(file, &status) != 0) {
    perror(path);
    exit(1);
  }
  *bytes = (uint64_t)status.st_size;
  const void* data = mmap(NULL, *bytes, PROT_READ, MAP_SHARED | MAP_POPULATE, file, 0);
  if (data == MAP_FAILED) {
    perror(path);
    exit(1);
  }
  return data;
}

static uint64_t random_u64(uint64_t* state) {  // SplitMix64 (Steele, Lea, Flood 2014)
  uint64_t z = (*state += 0x9E3779B97F4A7C15u);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

static void shuffle(uint64_t* cells, uint64_t count, uint64_t* state) {
  for (uint64_t i = count; i > 1; --i) {
    const uint64_t j = random_u64(state) % i;
    const uint64_t last = cells[i - 1];
    cells[i - 1] = cells[j];
    cells[j] = last;
  }
}

static void gather(const struct record* restrict records, uint64_t count, int32_t* restrict genes,
                   float* restrict counts) {
  for (uint64_t i = 0; i < count; ++i) {
    genes[i] = records[i].gene;
    counts[i] = records[i].count;
  }
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

int main(int argc, char** argv) {
  if (argc < 6) {
    fprintf(stderr, "gather_loop STREAM STARTS ROWS BATCHES SECONDS [SEED]\n");
    return 2;
  }
  uint64_t bytes = 0, start_bytes = 0;
  const struct record* records = mapped(argv[1], &bytes);
  const uint64_t* starts = mapped(argv[2], &start_bytes);
  const uint64_t cells = start_bytes / 8 - 1, rows = strtoull(argv[3], NULL, 10), batches = strtoull(argv[4], NULL, 10);
  const double seconds = strtod(argv[5], NULL);
  uint64_t seed = argc > 6 ? strtoull(argv[6], NULL, 10) : 0;
  if (start_bytes < 16 || starts[cells] * sizeof(struct record) != bytes || rows == 0 || batches == 0) {
    fprintf(stderr, "gather_loop: %s does not say where the cells of %s begin\n", argv[2], argv[1]);
    return 1;
  }
  uint64_t longest = 0;
  for (uint64_t i = 0; i < cells; ++i) {
    if (starts[i + 1] - starts[i] > longest) longest = starts[i + 1] - starts[i];
  }
  struct batch* all = calloc(batches, sizeof *all);
  for (uint64_t i = 0; i < batches; ++i) {
    all[i].genes = malloc(rows * longest * sizeof(int32_t));
    all[i].counts = malloc(rows * longest * sizeof(float));
    all[i].offsets = malloc((rows + 1) * sizeof(int32_t));
  }
  uint64_t* order = malloc(cells * sizeof *order);
  for (uint64_t i = 0; i < cells; ++i) order[i] = i;
  shuffle(order, cells, &seed);

  uint64_t done = 0, next = 0, number = 0;
  const double begin = now();
  double end = begin;
  while (end - begin < seconds) {
    struct batch* batch = &all[number++ % batches];
    uint64_t at = 0;
    batch->offsets[0] = 0;
    for (uint64_t row = 0; row < rows; ++row) {
      if (next == cells) {
        shuffle(order, cells, &seed);
        next = 0;
      }
      const uint64_t cell = order[next++], first = starts[cell], count = starts[cell + 1] - first;
      gather(records + first, count, batch->genes + at, batch->counts + at);
      at += count;
      batch->offsets[row + 1] = (int32_t)at;
    }
    done += rows;
    end = now();
  }
  printf("{\"cells\": %llu, \"seconds\": %.6f}\n", (unsigned long long)done, end - begin);
  return 0;
}
