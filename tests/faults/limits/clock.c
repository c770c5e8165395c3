// LD_PRELOAD shim: the time of day jumps. CLOCK_JUMPS has seconds, as "0,18000,-25200"; each is in force for
// CLOCK_EVERY_MS milliseconds, then the next one, and so on in a circle. Clocks that count from the start do not jump.
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long jump(void) {
  const char* jumps = getenv("CLOCK_JUMPS");
  const char* every = getenv("CLOCK_EVERY_MS");
  if (!jumps || !every) return 0;
  long found[16];
  int count = 0;
  for (char* end = (char*)jumps; count < 16; jumps = end + 1) {
    found[count++] = strtol(jumps, &end, 10);
    if (*end != ',') break;
  }
  struct timespec now;
  syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
  return found[(now.tv_sec * 1000 + now.tv_nsec / 1000000) / strtol(every, NULL, 10) % count];
}

int clock_gettime(clockid_t clock, struct timespec* to) {
  int result = (int)syscall(SYS_clock_gettime, clock, to);
  if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) to->tv_sec += jump();
  return result;
}

int gettimeofday(struct timeval* restrict to, void* restrict zone) {
  (void)zone;
  struct timespec now;
  int result = clock_gettime(CLOCK_REALTIME, &now);
  to->tv_sec = now.tv_sec;
  to->tv_usec = now.tv_nsec / 1000;
  return result;
}

time_t time(time_t* to) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (to) *to = now.tv_sec;
  return now.tv_sec;
}
