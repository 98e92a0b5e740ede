/* A program for the tool in batches_tool.c, which makes every queue an intercept queue: single doorbells for batches up
 * to a full ring, rewrites that overflow a small ring, and runs of up to 256 packets over the end of a large one. */
#include "suite.h"

int main(void) {
  begin();
  hsa_agent_t gpu = first_gpu();
  hsa_queue_t *small = queue_of(gpu, 64);
  const uint32_t sizes[] = {1, 2, 33, 64, 60, 64};
  for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    hsa_signal_value_t left = run_barriers(small, sizes[i]);
    printf("ring of 64, batch of %u: %lld not completed\n", sizes[i], (long long)left);
  }
  MUST(hsa_queue_destroy(small));

  hsa_queue_t *large = queue_of(gpu, 1024);
  const uint32_t wrapping[] = {512, 400, 256, 512, 300, 200};
  for (unsigned i = 0; i < sizeof wrapping / sizeof *wrapping; i++) {
    hsa_signal_value_t left = run_barriers(large, wrapping[i]);
    printf("ring of 1024, batch of %u: %lld not completed\n", wrapping[i], (long long)left);
  }
  MUST(hsa_queue_destroy(large));
  MUST(hsa_shut_down());
  return 0;
}
