/* A library whose constructor is the first to use the runtime: the tool comes up inside of it. Threads that are started there
 * begin when it has returned, those of a GPU in software too, so it does not wait for its kernels. */
#include "work.h"

void finish(void);

static work_t work;
static hsa_signal_t done;

__attribute__((constructor)) static void work_early(void) {
  work = start_work(getenv("LIFECYCLE_CODE"));
  done = signal_with(10);
  dispatch(&work, 1, 10, done);
  printf("at work\n");
}

void finish(void) {
  wait_done(done);
  end_work(&work);
  printf("finished\n");
}
