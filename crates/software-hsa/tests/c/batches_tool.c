/* A tool for HSA_TOOLS_LIB: makes every queue an intercept queue, prints the batches that its handler gets, and writes
 * each packet with empty barrier packets behind it, as many as BATCHES_TOOL_EXTRA says. */
#include <stdint.h>

#include "suite.h"

typedef void (*packet_writer)(const void *packets, uint64_t count);
typedef void (*packet_handler)(const void *packets, uint64_t count, uint64_t user_packet_index, void *data,
                               packet_writer writer);
typedef hsa_status_t (*queue_create)(hsa_agent_t, uint32_t, hsa_queue_type32_t,
                                     void (*)(hsa_status_t, hsa_queue_t *, void *), void *, uint32_t, uint32_t,
                                     hsa_queue_t **);
typedef hsa_status_t (*intercept_register)(hsa_queue_t *, packet_handler, void *);

/* hsa_api_trace.h: versions of 16 bytes, then one pointer a slot. */
struct table {
  uint32_t version[4];
  void *slots[];
};
struct api_table {
  uint32_t version[4];
  struct table *core, *amd_ext;
};

enum { CORE_QUEUE_CREATE = 7, AMD_EXT_INTERCEPT_CREATE = 37, AMD_EXT_INTERCEPT_REGISTER = 38 };

static queue_create create_intercepted;
static intercept_register register_handler;
static unsigned extra;

static void handler(const void *packets, uint64_t count, uint64_t index, void *data, packet_writer writer) {
  (void)data;
  printf("handler: %llu packets from %llu\n", (unsigned long long)count, (unsigned long long)index);
  if (extra == 0) {
    writer(packets, count);
    return;
  }
  hsa_barrier_and_packet_t *rewritten = calloc(count, (1 + extra) * PACKET_BYTES);
  hsa_barrier_and_packet_t *next = rewritten;
  for (uint64_t i = 0; i < count; i++) {
    memcpy(next++, (const char *)packets + i * PACKET_BYTES, PACKET_BYTES);
    for (unsigned k = 0; k < extra; k++)
      *next++ = barrier(HSA_PACKET_TYPE_BARRIER_AND, NULL, 0, (hsa_signal_t){0});
  }
  writer(rewritten, count * (1 + extra));
  free(rewritten);
}

static hsa_status_t create_queue(hsa_agent_t agent, uint32_t size, hsa_queue_type32_t type,
                                 void (*callback)(hsa_status_t, hsa_queue_t *, void *), void *data,
                                 uint32_t private_bytes, uint32_t group_bytes, hsa_queue_t **queue) {
  hsa_status_t status =
      create_intercepted(agent, size, type, callback, data, private_bytes, group_bytes, queue);
  return status == HSA_STATUS_SUCCESS ? register_handler(*queue, handler, NULL) : status;
}

bool OnLoad(void *table, uint64_t runtime_version, uint64_t failed_tool_count, const char *const *failed_tool_names);
void OnUnload(void);

bool OnLoad(void *table, uint64_t runtime_version, uint64_t failed_tool_count, const char *const *failed_tool_names) {
  struct api_table *api = table;
  (void)failed_tool_names;
  printf("tool: runtime version %llu, %llu failed tools\n", (unsigned long long)runtime_version,
         (unsigned long long)failed_tool_count);
  memcpy(&create_intercepted, &api->amd_ext->slots[AMD_EXT_INTERCEPT_CREATE], sizeof create_intercepted);
  memcpy(&register_handler, &api->amd_ext->slots[AMD_EXT_INTERCEPT_REGISTER], sizeof register_handler);
  queue_create replacement = create_queue;
  memcpy(&api->core->slots[CORE_QUEUE_CREATE], &replacement, sizeof replacement);
  const char *wanted = getenv("BATCHES_TOOL_EXTRA");
  extra = wanted == NULL ? 0 : (unsigned)atoi(wanted);
  return true;
}

void OnUnload(void) { printf("tool: unloaded\n"); }
