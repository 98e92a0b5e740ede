/* Kernels: loaded from the file that is the first argument (the code object of vectors.cl), dispatched, timed.
 *   kernels FILE */
#include "suite.h"

#define LAUNCHES 8

static void *read_file(const char *path, size_t *size) {
  FILE *file = fopen(path, "rb");
  if (file == NULL) {
    printf("cannot read %s\n", path);
    exit(1);
  }
  fseek(file, 0, SEEK_END);
  *size = (size_t)ftell(file);
  rewind(file);
  void *bytes = malloc(*size);
  if (fread(bytes, 1, *size, file) != *size)
    exit(1);
  fclose(file);
  return bytes;
}

static void describe(hsa_executable_t executable, hsa_agent_t gpu, const char *name) {
  hsa_executable_symbol_t symbol;
  MUST(hsa_executable_get_symbol_by_name(executable, name, &gpu, &symbol));
  uint32_t arguments = 0, lds = 0;
  MUST(hsa_executable_symbol_get_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_KERNARG_SEGMENT_SIZE, &arguments));
  MUST(hsa_executable_symbol_get_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_GROUP_SEGMENT_SIZE, &lds));
  printf("%s: %u bytes of arguments, %u of LDS\n", name, arguments, lds);
}

static uint64_t kernel_object(hsa_executable_t executable, hsa_agent_t gpu, const char *name) {
  hsa_executable_symbol_t symbol;
  uint64_t object = 0;
  MUST(hsa_executable_get_symbol_by_name(executable, name, &gpu, &symbol));
  MUST(hsa_executable_symbol_get_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT, &object));
  return object;
}

static void dispatch(hsa_agent_t gpu, uint64_t object) {
  hsa_queue_t *queue = queue_of(gpu, 64);
  MUST(hsa_amd_profiling_set_profiler_enabled(queue, 1));
  hsa_signal_t done[LAUNCHES];
  hsa_kernel_dispatch_packet_t packets[LAUNCHES];
  memset(packets, 0, sizeof packets);
  for (unsigned i = 0; i < LAUNCHES; i++) {
    hsa_kernel_dispatch_packet_t *packet = &packets[i];
    done[i] = signal_with(1);
    packet->header = header_of(HSA_PACKET_TYPE_KERNEL_DISPATCH);
    packet->setup = 1;
    packet->workgroup_size_x = 256;
    packet->workgroup_size_y = packet->workgroup_size_z = 1;
    packet->grid_size_x = 256u * 1000;
    packet->grid_size_y = packet->grid_size_z = 1;
    packet->kernel_object = object;
    packet->completion_signal = done[i];
  }
  uint64_t before = 0, after = 0;
  MUST(hsa_system_get_info(HSA_SYSTEM_INFO_TIMESTAMP, &before));
  submit(queue, packets, LAUNCHES);
  for (unsigned i = 0; i < LAUNCHES; i++)
    wait_done(done[i]);
  MUST(hsa_system_get_info(HSA_SYSTEM_INFO_TIMESTAMP, &after));

  /* ROCr fits one clock to the other: a microsecond is its inaccuracy. */
  const uint64_t slack = 1000;
  unsigned inside = 0, positive = 0, ordered = 0;
  uint64_t last = 0;
  for (unsigned i = 0; i < LAUNCHES; i++) {
    hsa_amd_profiling_dispatch_time_t time = {0, 0};
    MUST(hsa_amd_profiling_get_dispatch_time(gpu, done[i], &time));
    inside += time.start + slack >= before && time.end <= after + slack;
    positive += time.end > time.start;
    ordered += time.start + slack >= last;
    last = time.end;
    MUST(hsa_signal_destroy(done[i]));
  }
  printf("%u dispatches: %u ran between submission and completion, %u took time, %u began after the one before\n",
         LAUNCHES, inside, positive, ordered);
  MUST(hsa_queue_destroy(queue));
}

int main(int count, char **arguments) {
  if (count != 2) {
    printf("usage: kernels FILE\n");
    return 2;
  }
  begin();
  hsa_agent_t gpu = first_gpu();
  size_t size = 0;
  void *bytes = read_file(arguments[1], &size);
  hsa_code_object_reader_t reader;
  MUST(hsa_code_object_reader_create_from_memory(bytes, size, &reader));
  hsa_executable_t executable;
  MUST(hsa_executable_create_alt(HSA_PROFILE_BASE, HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT, NULL, &executable));
  MUST(hsa_executable_load_agent_code_object(executable, gpu, reader, NULL, NULL));
  MUST(hsa_executable_freeze(executable, NULL));
  const char *names[] = {"empty.kd", "vector_add.kd", "saxpy.kd", "collatz.kd"};
  for (unsigned i = 0; i < 4; i++)
    describe(executable, gpu, names[i]);
  dispatch(gpu, kernel_object(executable, gpu, names[0]));
  MUST(hsa_executable_destroy(executable));
  MUST(hsa_code_object_reader_destroy(reader));
  free(bytes);
  MUST(hsa_shut_down());
  return 0;
}
