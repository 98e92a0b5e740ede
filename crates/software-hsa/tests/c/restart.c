/* The runtime shut down and started again, several times, with work in between. */
#include "suite.h"

int main(void) {
  for (unsigned round = 0; round < 3; round++) {
    begin();
    hsa_queue_t *queue = queue_of(first_gpu(), 64);
    printf("round %u: %lld not completed\n", round, (long long)run_barriers(queue, 64));
    MUST(hsa_queue_destroy(queue));
    MUST(hsa_shut_down());
  }
  return 0;
}
