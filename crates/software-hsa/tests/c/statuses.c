/* Statuses of calls with wrong arguments, and the count of hsa_init. */
#include "suite.h"

static void show(const char *what, hsa_status_t status) { printf("%s: %#x\n", what, (unsigned)status); }

static hsa_status_t create(hsa_agent_t gpu, uint32_t packets) {
  hsa_queue_t *queue = NULL;
  hsa_status_t status =
      hsa_queue_create(gpu, packets, HSA_QUEUE_TYPE_MULTI, NULL, NULL, UINT32_MAX, UINT32_MAX, &queue);
  if (status == HSA_STATUS_SUCCESS)
    MUST(hsa_queue_destroy(queue));
  return status;
}

static hsa_status_t stop(hsa_agent_t agent, void *data) {
  (void)agent;
  (void)data;
  return HSA_STATUS_INFO_BREAK;
}

int main(void) {
  uint64_t now = 0;
  show("a call before hsa_init", hsa_system_get_info(HSA_SYSTEM_INFO_TIMESTAMP, &now));
  show("hsa_shut_down before hsa_init", hsa_shut_down());
  begin();
  MUST(hsa_init());
  MUST(hsa_shut_down());
  show("a call after one of two hsa_shut_down", hsa_system_get_info(HSA_SYSTEM_INFO_TIMESTAMP, &now));
  uint64_t frequency = 0;
  MUST(hsa_system_get_info(HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY, &frequency));
  printf("timestamps a second: %llu\n", (unsigned long long)frequency);

  hsa_agent_t gpu = first_gpu();
  show("an iteration that stops", hsa_iterate_agents(stop, NULL));
  show("an iteration without callback", hsa_iterate_agents(NULL, NULL));
  show("an attribute that does not exist", hsa_agent_get_info(gpu, (hsa_agent_info_t)0x7777, &now));
  show("a signal without place for the handle", hsa_signal_create(1, 0, NULL, NULL));
  show("the signal 0 destroyed", hsa_signal_destroy((hsa_signal_t){0}));

  show("a queue of 64", create(gpu, 64));
  show("a queue of 65", create(gpu, 65));
  show("a queue of 32", create(gpu, 32));
  show("a queue of 262144", create(gpu, 1u << 18));
  show("no queue destroyed", hsa_queue_destroy(NULL));

  hsa_code_object_reader_t reader;
  show("a reader of nothing", hsa_code_object_reader_create_from_memory(NULL, 0, &reader));
  hsa_executable_t executable;
  MUST(hsa_executable_create_alt(HSA_PROFILE_BASE, HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT, NULL, &executable));
  hsa_executable_symbol_t symbol;
  show("a symbol of an empty executable", hsa_executable_get_symbol_by_name(executable, "none.kd", &gpu, &symbol));
  MUST(hsa_executable_freeze(executable, NULL));
  show("an executable frozen twice", hsa_executable_freeze(executable, NULL));
  MUST(hsa_executable_destroy(executable));
  MUST(hsa_shut_down());
  show("a call after the last hsa_shut_down", hsa_system_get_info(HSA_SYSTEM_INFO_TIMESTAMP, &now));
  return 0;
}
