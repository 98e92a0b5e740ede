/* An application that writes packet lists to a queue, and the smallest tool: a hook that passes everything on.
 *
 * The benchmark calls it with lists of kernels, which whoever intercepts the queue rewrites, and with lists as
 * interception emits them: then it is the floor that interception is compared with. */
#include <stdint.h>
#include <string.h>

enum { DWORDS = 16, COMPLETION = 14, DEPTH = 3 };

/* hsa.h: what the benchmark uses of it. */
typedef struct {
  int type;
  uint32_t features;
  void *base_address;
  uint64_t doorbell;
  uint32_t size;
} queue_t;
enum { CONDITION_LT = 2, STATE_BLOCKED = 0 };

/* Entries of the runtime's table, as they are when the application runs. */
typedef struct {
  uint64_t (*add_write_index)(queue_t *, uint64_t);
  uint64_t (*load_read_index)(queue_t *);
  void (*store)(uint64_t signal, int64_t value);
  int64_t (*wait)(uint64_t signal, int condition, int64_t compare, uint64_t timeout, int state);
} entries_t;

/* A batch: packets under one doorbell. Those whose completion signal is 1 count down the batch's own. */
typedef struct {
  const uint32_t (*packets)[DWORDS];
  uint64_t count;
  int64_t completions;
} batch_t;

static uint64_t completion_of(const uint32_t *packet) {
  return packet[COMPLETION] | (uint64_t)packet[COMPLETION + 1] << 32;
}

static void submit(const entries_t *entries, queue_t *queue, const batch_t *batch, uint64_t done) {
  uint64_t first = entries->add_write_index(queue, batch->count);
  while (first + batch->count > entries->load_read_index(queue) + queue->size)
    __builtin_ia32_pause();
  for (uint64_t i = 0; i < batch->count; i++) {
    const uint32_t *packet = batch->packets[i];
    uint32_t *slot = (uint32_t *)queue->base_address + (first + i) % queue->size * DWORDS;
    memcpy(slot + 1, packet + 1, (DWORDS - 1) * sizeof *slot);
    if (completion_of(packet) == 1)
      memcpy(slot + COMPLETION, &done, sizeof done);
    __atomic_store_n(slot, packet[0], __ATOMIC_RELEASE);
  }
  entries->store(queue->doorbell, (int64_t)(first + batch->count - 1));
}

/* Submits the batch `times` times, at most DEPTH of them at once, each with one of the DEPTH signals. Returns how many
 * did not complete. */
int64_t run(const entries_t *entries, queue_t *queue, const batch_t *batch, uint64_t times, const uint64_t *signals,
            uint64_t timeout) {
  int64_t missing = 0;
  for (uint64_t i = 0; i < times + DEPTH; i++) {
    uint64_t done = signals[i % DEPTH];
    if (i >= DEPTH && entries->wait(done, CONDITION_LT, 1, timeout, STATE_BLOCKED) >= 1)
      missing++;
    if (i >= times)
      continue;
    entries->store(done, batch->completions);
    submit(entries, queue, batch, done);
  }
  return missing;
}

typedef void (*writer_t)(const void *packets, uint64_t count);

void pass_on(const void *packets, uint64_t count, uint64_t index, void *data, writer_t writer) {
  (void)index, (void)data;
  writer(packets, count);
}
