/* Signals: arithmetic, waits with and without an end, wait for any, asynchronous handlers. */
#include "suite.h"

#define MILLISECOND 1000000u

static void arithmetic(void) {
  hsa_signal_t signal = signal_with(12);
  hsa_signal_add_scacq_screl(signal, 30);
  hsa_signal_subtract_scacq_screl(signal, 50);
  printf("12 + 30 - 50: %lld\n", (long long)hsa_signal_load_scacquire(signal));
  hsa_signal_and_scacq_screl(signal, 0xff);
  hsa_signal_or_scacq_screl(signal, 0x100);
  hsa_signal_xor_scacq_screl(signal, 0xf0);
  printf("bits: %#llx\n", (unsigned long long)hsa_signal_load_scacquire(signal));
  printf("exchange: %#llx\n", (unsigned long long)hsa_signal_exchange_scacq_screl(signal, 5));
  long long found = (long long)hsa_signal_cas_scacq_screl(signal, 4, 9);
  printf("compare with 4: found %lld, now %lld\n", found, (long long)hsa_signal_load_scacquire(signal));
  found = (long long)hsa_signal_cas_scacq_screl(signal, 5, 9);
  printf("compare with 5: found %lld, now %lld\n", found, (long long)hsa_signal_load_scacquire(signal));
  MUST(hsa_signal_destroy(signal));
}

static void waits(void) {
  static const struct {
    const char *name;
    hsa_signal_condition_t condition;
    hsa_signal_value_t compare;
  } cases[] = {
      {"== 3", HSA_SIGNAL_CONDITION_EQ, 3},  {"== 4", HSA_SIGNAL_CONDITION_EQ, 4},
      {"!= 4", HSA_SIGNAL_CONDITION_NE, 4},  {"< 3", HSA_SIGNAL_CONDITION_LT, 3},
      {"< 4", HSA_SIGNAL_CONDITION_LT, 4},   {">= 3", HSA_SIGNAL_CONDITION_GTE, 3},
      {">= 4", HSA_SIGNAL_CONDITION_GTE, 4},
  };
  hsa_signal_t signal = signal_with(3);
  for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
    hsa_signal_value_t value = hsa_signal_wait_scacquire(signal, cases[i].condition, cases[i].compare, MILLISECOND,
                                                         HSA_WAIT_STATE_BLOCKED);
    printf("wait for 3 %s gives %lld\n", cases[i].name, (long long)value);
  }
  MUST(hsa_signal_destroy(signal));
}

/* No time-out here and no look at the satisfying value: ROCr 7.2.4 crashes when a wait for any of several signals times
 * out (it then reads the value of signal number -1, even where nobody asked for it), and gives 0 as the value. */
static void any(void) {
  hsa_signal_t signals[3] = {signal_with(1), signal_with(1), signal_with(1)};
  hsa_signal_condition_t conditions[3] = {HSA_SIGNAL_CONDITION_EQ, HSA_SIGNAL_CONDITION_EQ, HSA_SIGNAL_CONDITION_LT};
  hsa_signal_value_t values[3] = {0, 0, 0};
  hsa_signal_store_screlease(signals[2], -4);
  uint32_t index =
      hsa_amd_signal_wait_any(3, signals, conditions, values, FOREVER, HSA_WAIT_STATE_BLOCKED, NULL);
  printf("wait for any: signal %d\n", (int)index);
  for (unsigned i = 0; i < 3; i++)
    MUST(hsa_signal_destroy(signals[i]));
}

/* Counts down a second signal, so that the program can wait for the handler. */
static bool handler(hsa_signal_value_t value, void *reached) {
  hsa_signal_store_screlease(*(hsa_signal_t *)reached, value);
  return false;
}

static void handlers(hsa_agent_t gpu) {
  hsa_queue_t *queue = queue_of(gpu, 64);
  hsa_signal_t done = signal_with(3), reached = signal_with(99);
  MUST(hsa_amd_signal_async_handler(done, HSA_SIGNAL_CONDITION_LT, 1, handler, &reached));
  hsa_barrier_and_packet_t packet = barrier(HSA_PACKET_TYPE_BARRIER_AND, NULL, 0, done);
  for (unsigned i = 0; i < 3; i++)
    submit(queue, &packet, 1);
  printf("handler after three packets: value %lld\n", (long long)wait_done(reached));
  MUST(hsa_queue_destroy(queue));
  MUST(hsa_signal_destroy(done));
  MUST(hsa_signal_destroy(reached));
}

int main(void) {
  begin();
  arithmetic();
  waits();
  any();
  handlers(first_gpu());
  MUST(hsa_shut_down());
  return 0;
}
