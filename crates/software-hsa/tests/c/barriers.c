/* Barrier packets: AND, OR, signals that are zero already, and a chain over two queues. */
#include "suite.h"

#define LINKS 20
#define MILLISECOND 1000000u

static const char *is_done(hsa_signal_t signal, uint64_t timeout) {
  hsa_signal_value_t value =
      hsa_signal_wait_scacquire(signal, HSA_SIGNAL_CONDITION_LT, 1, timeout, HSA_WAIT_STATE_BLOCKED);
  return value < 1 ? "done" : "waiting";
}

static void one_by_one(hsa_queue_t *queue, unsigned type, const char *name, unsigned needed) {
  hsa_signal_t wait[5], done = signal_with(1);
  for (unsigned i = 0; i < 5; i++)
    wait[i] = signal_with(1);
  hsa_barrier_and_packet_t packet = barrier(type, wait, 5, done);
  submit(queue, &packet, 1);
  printf("%s of 5, none zero: %s\n", name, is_done(done, MILLISECOND));
  for (unsigned i = 0; i < needed; i++) {
    hsa_signal_store_screlease(wait[4 - i], 0);
    printf("%s of 5, %u zero: %s\n", name, i + 1, is_done(done, i + 1 == needed ? FOREVER : MILLISECOND));
  }
  for (unsigned i = 0; i < 5; i++)
    MUST(hsa_signal_destroy(wait[i]));
  MUST(hsa_signal_destroy(done));
}

static void already_zero(hsa_queue_t *queue) {
  hsa_signal_t wait[2] = {signal_with(0), signal_with(0)}, done = signal_with(2);
  hsa_barrier_and_packet_t packets[2] = {barrier(HSA_PACKET_TYPE_BARRIER_AND, wait, 2, done),
                                         barrier(HSA_PACKET_TYPE_BARRIER_OR, wait, 2, done)};
  submit(queue, packets, 2);
  printf("signals that are zero already: %s\n", is_done(done, FOREVER));
  MUST(hsa_signal_destroy(wait[0]));
  MUST(hsa_signal_destroy(wait[1]));
  MUST(hsa_signal_destroy(done));
}

/* Each link waits for the one before, on the other queue. */
static void chain(hsa_queue_t *queues[2]) {
  hsa_signal_t links[LINKS + 1];
  for (unsigned i = 0; i <= LINKS; i++)
    links[i] = signal_with(1);
  for (unsigned i = 0; i < LINKS; i++) {
    hsa_barrier_and_packet_t packet = barrier(HSA_PACKET_TYPE_BARRIER_AND, &links[i], 1, links[i + 1]);
    submit(queues[i % 2], &packet, 1);
  }
  printf("chain before its first link: %s\n", is_done(links[LINKS], MILLISECOND));
  hsa_signal_store_screlease(links[0], 0);
  printf("chain of %u links: %s\n", LINKS, is_done(links[LINKS], FOREVER));
  unsigned zero = 0;
  for (unsigned i = 0; i <= LINKS; i++) {
    zero += hsa_signal_load_scacquire(links[i]) == 0;
    MUST(hsa_signal_destroy(links[i]));
  }
  printf("signals of the chain at zero: %u\n", zero);
}

int main(void) {
  begin();
  hsa_agent_t gpu = first_gpu();
  hsa_queue_t *queues[2] = {queue_of(gpu, 64), queue_of(gpu, 64)};
  one_by_one(queues[0], HSA_PACKET_TYPE_BARRIER_AND, "barrier-and", 5);
  one_by_one(queues[0], HSA_PACKET_TYPE_BARRIER_OR, "barrier-or", 1);
  already_zero(queues[0]);
  chain(queues);
  MUST(hsa_queue_destroy(queues[0]));
  MUST(hsa_queue_destroy(queues[1]));
  MUST(hsa_shut_down());
  return 0;
}
