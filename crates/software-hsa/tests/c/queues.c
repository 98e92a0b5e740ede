/* Plain queues: batches of one packet up to a full ring, wrap, two queues, a full ring of the largest size. */
#include "suite.h"

static void every_size(hsa_agent_t gpu) {
  hsa_queue_t *queue = queue_of(gpu, 64);
  uint64_t total = 0;
  hsa_signal_value_t left = 0;
  for (uint32_t size = 1; size <= queue->size; size++) {
    left += run_barriers(queue, size);
    total += size;
  }
  printf("batches of 1 to %u packets: %llu packets, %lld not completed\n", queue->size, (unsigned long long)total,
         (long long)left);
  printf("write index %llu\n", (unsigned long long)hsa_queue_load_write_index_relaxed(queue));
  MUST(hsa_queue_destroy(queue));
}

static void wrap(hsa_agent_t gpu) {
  hsa_queue_t *queue = queue_of(gpu, 1024);
  const uint32_t sizes[] = {1000, 1024, 1, 1024, 1023};
  for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++)
    printf("batch of %u: %lld not completed\n", sizes[i], (long long)run_barriers(queue, sizes[i]));
  MUST(hsa_queue_destroy(queue));
}

static void largest(hsa_agent_t gpu) {
  uint32_t packets = 0;
  MUST(hsa_agent_get_info(gpu, HSA_AGENT_INFO_QUEUE_MAX_SIZE, &packets));
  hsa_queue_t *queue = queue_of(gpu, packets);
  printf("largest queue %u: %lld of a full ring not completed\n", packets, (long long)run_barriers(queue, packets));
  MUST(hsa_queue_destroy(queue));
}

static void side_by_side(hsa_agent_t gpu) {
  hsa_queue_t *stuck = queue_of(gpu, 64), *free_one = queue_of(gpu, 64);
  hsa_signal_t gate = signal_with(1), done = signal_with(1);
  hsa_barrier_and_packet_t packet = barrier(HSA_PACKET_TYPE_BARRIER_AND, &gate, 1, done);
  submit(stuck, &packet, 1);
  printf("a queue beside one that waits: %lld not completed\n", (long long)run_barriers(free_one, 64));
  printf("the one that waits: signal %lld\n", (long long)hsa_signal_load_scacquire(done));
  hsa_signal_store_screlease(gate, 0);
  printf("released: signal %lld\n", (long long)wait_done(done));
  MUST(hsa_queue_destroy(stuck));
  MUST(hsa_queue_destroy(free_one));
  MUST(hsa_signal_destroy(gate));
  MUST(hsa_signal_destroy(done));
}

int main(void) {
  begin();
  hsa_agent_t gpu = first_gpu();
  every_size(gpu);
  wrap(gpu);
  largest(gpu);
  side_by_side(gpu);
  MUST(hsa_shut_down());
  return 0;
}
