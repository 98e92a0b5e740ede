/* Applications that do what tools have hung or crashed on.
 *   application MODE CODE [LIBRARY] */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "work.h"

static const char *code;
static const char *library;

/* As it should be. */
static int ends(void) {
  work_t work = start_work(code);
  dispatch_and_wait(&work, 1, 10);
  end_work(&work);
  return 0;
}

/* Queues work, synchronises with nothing, leaves main. */
static int forgets(void) {
  work_t work = start_work(code);
  dispatch(&work, 1, 100, signal_with(100));
  return 0;
}

/* Waits for its work, then leaves main without a word to the runtime. */
static int leaves(void) {
  work_t work = start_work(code);
  dispatch_and_wait(&work, 1, 10);
  return 0;
}

/* Shuts the runtime down without destroying its queue, and lives on. */
static int abandons(void) {
  work_t work = start_work(code);
  dispatch_and_wait(&work, 1, 10);
  MUST(hsa_shut_down());
  usleep(300000);
  printf("still here\n");
  return 0;
}

/* The same with work on its way, again and again. */
static int abandons_again(void) {
  for (uint32_t round = 0; round < 3; round++) {
    work_t work = start_work(code);
    dispatch_and_wait(&work, 1 + 10 * round, 10);
    MUST(hsa_init());
    MUST(hsa_shut_down());
    dispatch(&work, 1, 10, signal_with(10));
    MUST(hsa_shut_down());
    usleep(50000);
    printf("round %u\n", round);
  }
  return 0;
}

/* Loads a library whose constructor ends the process, with work on its way. */
static int loads(void) {
  work_t work = start_work(code);
  dispatch(&work, 1, 100, signal_with(100));
  dlopen(library, RTLD_NOW);
  printf("the constructor returned\n");
  return 0;
}

/* Loads a library before there is a runtime, and lets it finish what its constructor began. */
static int loads_first(void) {
  void *handle = dlopen(library, RTLD_NOW);
  printf("the constructor returned\n");
  void *symbol = handle == NULL ? NULL : dlsym(handle, "finish");
  void (*finish)(void);
  memcpy(&finish, &symbol, sizeof finish);
  if (finish != NULL)
    finish();
  return 0;
}

/* Eight children, half of which leave by exit, half by _exit; the parent goes on. */
static int forks(void) {
  work_t work = start_work(code);
  dispatch_and_wait(&work, 1, 10);
  pid_t children[8];
  for (int i = 0; i < 8; i++) {
    fflush(stdout);
    children[i] = fork();
    if (children[i] == 0) {
      if (i % 2 == 0)
        exit(10 + i);
      _exit(10 + i);
    }
    dispatch_and_wait(&work, 11 + (uint32_t)i, 1);
  }
  for (int i = 0; i < 8; i++) {
    int status = 0;
    waitpid(children[i], &status, 0);
    printf("child %d: %s %d\n", i, WIFEXITED(status) ? "left with" : "ended by signal",
           WIFEXITED(status) ? WEXITSTATUS(status) - 10 - i : WTERMSIG(status));
  }
  dispatch_and_wait(&work, 19, 1);
  end_work(&work);
  return 0;
}

/* A child that is asked to go, and one that tells a queue of its parent to go on. */
static int forks_more(void) {
  work_t work = start_work(code);
  dispatch_and_wait(&work, 1, 10);
  fflush(stdout);
  pid_t asked = fork();
  if (asked == 0) {
    for (;;)
      pause();
  }
  kill(asked, SIGTERM);
  int status = 0;
  waitpid(asked, &status, 0);
  printf("asked: signal %d\n", WIFSIGNALED(status) ? WTERMSIG(status) : 0);
  pid_t user = fork();
  if (user == 0) {
    hsa_signal_store_screlease(work.queue->doorbell_signal, 0);
    hsa_queue_load_read_index_scacquire(work.queue);
    _exit(0);
  }
  waitpid(user, &status, 0);
  printf("user: %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
  dispatch_and_wait(&work, 11, 1);
  end_work(&work);
  return 0;
}

/* Works until somebody ends it. */
static int lasts(void) {
  work_t work = start_work(code);
  for (uint32_t n = 1; n < UINT32_MAX; n++)
    dispatch_and_wait(&work, 1 + n % 50, 1);
  return 1;
}

/* The runtime goes down and comes up again. */
static int restarts(void) {
  for (uint32_t round = 0; round < 3; round++) {
    work_t work = start_work(code);
    dispatch_and_wait(&work, 1 + 10 * round, 10);
    end_work(&work);
    printf("round %u\n", round);
  }
  return 0;
}

/* Signals that somebody has a handler for or ignores. */
static int handles(void) {
  work_t work = start_work(code);
  dispatch_and_wait(&work, 1, 10);
  for (int number = 1; number < NSIG; number++) {
    struct sigaction action;
    if (sigaction(number, NULL, &action) == 0 && action.sa_handler != SIG_DFL)
      printf("signal %d is handled\n", number);
  }
  end_work(&work);
  return 0;
}

static volatile sig_atomic_t caught;
static void on_signal(int number) { caught = number; }

/* Handlers of its own, which must run, once each, while the tool is at work. */
static int catches(void) {
  signal(SIGINT, on_signal);
  signal(SIGABRT, on_signal);
  signal(SIGSEGV, on_signal);
  work_t work = start_work(code);
  const int numbers[] = {SIGINT, SIGABRT, SIGSEGV};
  for (uint32_t i = 0; i < 3; i++) {
    hsa_signal_t done = signal_with(10);
    dispatch(&work, 1 + 10 * i, 10, done);
    raise(numbers[i]);
    printf("caught %d\n", caught == numbers[i]);
    wait_done(done);
  }
  end_work(&work);
  return 0;
}

/* Closes the tool's library more often than anybody opened it. */
static int closes(void) {
  work_t work = start_work(code);
  dispatch_and_wait(&work, 1, 10);
  void *tool = dlopen(library, RTLD_NOW | RTLD_NOLOAD);
  printf("the tool is %s\n", tool == NULL ? "not there" : "there");
  for (int i = 0; i < 3 && tool != NULL; i++)
    dlclose(tool);
  dispatch_and_wait(&work, 11, 10);
  end_work(&work);
  return 0;
}

static work_t shared;

static void *load_and_unload(void *argument) {
  (void)argument;
  for (int i = 0; i < 10; i++) {
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    hsa_executable_t executable;
    load(shared.gpu, code, &executable);
    MUST(hsa_executable_destroy(executable));
    if (handle != NULL)
      dlclose(handle);
  }
  return NULL;
}

/* Sixteen threads load libraries and register code objects, while kernels run. */
static int registers(void) {
  shared = start_work(code);
  pthread_t threads[16];
  for (int i = 0; i < 16; i++)
    pthread_create(&threads[i], NULL, load_and_unload, NULL);
  for (uint32_t n = 1; n <= 20; n++)
    dispatch_and_wait(&shared, n, 1);
  for (int i = 0; i < 16; i++)
    pthread_join(threads[i], NULL);
  end_work(&shared);
  return 0;
}

/* What a library's constructor did is all that happens. */
static int nothing(void) { return 0; }

int main(int count, char **arguments) {
  static const struct {
    const char *name;
    int (*run)(void);
  } modes[] = {{"ends", ends},         {"forgets", forgets},       {"leaves", leaves},     {"loads", loads},
               {"abandons", abandons}, {"abandons-again", abandons_again},
               {"loads-first", loads_first}, {"forks", forks},     {"forks-more", forks_more}, {"lasts", lasts},
               {"restarts", restarts}, {"handles", handles},       {"catches", catches},   {"closes", closes},
               {"registers", registers}, {"nothing", nothing}};
  if (count >= 3) {
    code = arguments[2];
    library = count > 3 ? arguments[3] : NULL;
    for (unsigned i = 0; i < sizeof modes / sizeof *modes; i++)
      if (strcmp(arguments[1], modes[i].name) == 0)
        return modes[i].run();
  }
  printf("usage: application MODE CODE [LIBRARY]\n");
  return 2;
}
