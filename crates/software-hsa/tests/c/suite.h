/* What all programs of the suite use. Each prints what it saw, one fact a line, nothing that differs between runs. */
#ifndef SUITE_H
#define SUITE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hsa_subset.h"

#define FOREVER UINT64_MAX
#define PACKET_BYTES 64u

/* Ends the program unless the call succeeds. */
#define MUST(call) must((call), #call)

static inline void must(hsa_status_t status, const char *call) {
  if (status == HSA_STATUS_SUCCESS)
    return;
  printf("%s: status %#x\n", call, (unsigned)status);
  exit(1);
}

static inline hsa_status_t take_gpu(hsa_agent_t agent, void *found) {
  uint32_t kind = 0;
  MUST(hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &kind));
  if (kind != HSA_DEVICE_TYPE_GPU)
    return HSA_STATUS_SUCCESS;
  *(hsa_agent_t *)found = agent;
  return HSA_STATUS_INFO_BREAK;
}

static inline hsa_agent_t first_gpu(void) {
  hsa_agent_t gpu = {0};
  hsa_iterate_agents(take_gpu, &gpu);
  if (gpu.handle == 0) {
    printf("no GPU\n");
    exit(1);
  }
  return gpu;
}

/* Starts the runtime; output goes out line by line, also in a pipe. */
static inline void begin(void) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  MUST(hsa_init());
}

static inline hsa_signal_t signal_with(hsa_signal_value_t value) {
  hsa_signal_t signal = {0};
  MUST(hsa_signal_create(value, 0, NULL, &signal));
  return signal;
}

static inline hsa_queue_t *queue_of(hsa_agent_t gpu, uint32_t packets) {
  hsa_queue_t *queue = NULL;
  MUST(hsa_queue_create(gpu, packets, HSA_QUEUE_TYPE_MULTI, NULL, NULL, UINT32_MAX, UINT32_MAX, &queue));
  return queue;
}

/* Type, BARRIER bit, system acquire and release. */
static inline uint16_t header_of(unsigned type) { return (uint16_t)(type | 1u << 8 | 2u << 9 | 2u << 11); }

/* A barrier packet of the type that waits for `count` signals. */
static inline hsa_barrier_and_packet_t barrier(unsigned type, const hsa_signal_t *wait, unsigned count,
                                               hsa_signal_t completion) {
  hsa_barrier_and_packet_t packet;
  memset(&packet, 0, sizeof packet);
  packet.header = header_of(type);
  for (unsigned i = 0; i < count; i++)
    packet.dep_signal[i] = wait[i];
  packet.completion_signal = completion;
  return packet;
}

/* Writes packets into the ring, waiting for room; returns the index of the last. */
static inline uint64_t write_packets(hsa_queue_t *queue, const void *packets, uint64_t count) {
  uint64_t first = hsa_queue_add_write_index_relaxed(queue, count);
  for (uint64_t i = 0; i < count; i++) {
    while (first + i >= hsa_queue_load_read_index_scacquire(queue) + queue->size) {
    }
    char *slot = (char *)queue->base_address + (first + i) % queue->size * PACKET_BYTES;
    const char *packet = (const char *)packets + i * PACKET_BYTES;
    uint32_t head;
    memcpy(&head, packet, sizeof head);
    memcpy(slot + sizeof head, packet + sizeof head, PACKET_BYTES - sizeof head);
    __atomic_store_n((uint32_t *)(void *)slot, head, __ATOMIC_RELEASE);
  }
  return first + count - 1;
}

static inline void submit(hsa_queue_t *queue, const void *packets, uint64_t count) {
  uint64_t last = write_packets(queue, packets, count);
  hsa_signal_store_screlease(queue->doorbell_signal, (hsa_signal_value_t)last);
}

/* Waits until the value is below 1 and returns it. */
static inline hsa_signal_value_t wait_done(hsa_signal_t signal) {
  return hsa_signal_wait_scacquire(signal, HSA_SIGNAL_CONDITION_LT, 1, FOREVER, HSA_WAIT_STATE_BLOCKED);
}

/* Submits `count` equal barrier packets under one doorbell and waits for them. */
static inline hsa_signal_value_t run_barriers(hsa_queue_t *queue, uint32_t count) {
  hsa_signal_t done = signal_with(count);
  hsa_barrier_and_packet_t *packets = calloc(count, PACKET_BYTES);
  for (uint32_t i = 0; i < count; i++)
    packets[i] = barrier(HSA_PACKET_TYPE_BARRIER_AND, NULL, 0, done);
  submit(queue, packets, count);
  hsa_signal_value_t left = wait_done(done);
  free(packets);
  MUST(hsa_signal_destroy(done));
  return left;
}

#endif
