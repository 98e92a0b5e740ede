/* Kernels of the code object of vectors.cl, dispatched with a number of waves that says which dispatch it is. */
#ifndef WORK_H
#define WORK_H

#include "suite.h"

typedef struct {
  hsa_agent_t gpu;
  hsa_queue_t *queue;
  hsa_executable_t executable;
  uint64_t kernel;
} work_t;

static inline void *read_file(const char *path, size_t *size) {
  FILE *file = fopen(path, "rb");
  if (file == NULL) {
    printf("cannot read %s\n", path);
    exit(2);
  }
  fseek(file, 0, SEEK_END);
  *size = (size_t)ftell(file);
  rewind(file);
  void *bytes = malloc(*size);
  if (fread(bytes, 1, *size, file) != *size)
    exit(2);
  fclose(file);
  return bytes;
}

/* Loads the code object; the handle of the kernel that does nothing. */
static inline uint64_t load(hsa_agent_t gpu, const char *path, hsa_executable_t *executable) {
  size_t size = 0;
  void *bytes = read_file(path, &size);
  hsa_code_object_reader_t reader;
  MUST(hsa_code_object_reader_create_from_memory(bytes, size, &reader));
  MUST(hsa_executable_create_alt(HSA_PROFILE_BASE, HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT, NULL, executable));
  MUST(hsa_executable_load_agent_code_object(*executable, gpu, reader, NULL, NULL));
  MUST(hsa_executable_freeze(*executable, NULL));
  hsa_executable_symbol_t symbol;
  uint64_t object = 0;
  MUST(hsa_executable_get_symbol_by_name(*executable, "empty.kd", &gpu, &symbol));
  MUST(hsa_executable_symbol_get_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT, &object));
  MUST(hsa_code_object_reader_destroy(reader));
  free(bytes);
  return object;
}

static inline work_t start_work(const char *path) {
  work_t work;
  begin();
  work.gpu = first_gpu();
  work.kernel = load(work.gpu, path, &work.executable);
  work.queue = queue_of(work.gpu, 256);
  return work;
}

/* Submits dispatches of `first`, `first + 1`, ... waves under one doorbell; each counts `done` down. */
static inline void dispatch(const work_t *work, uint32_t first, uint32_t count, hsa_signal_t done) {
  hsa_kernel_dispatch_packet_t *packets = calloc(count, PACKET_BYTES);
  for (uint32_t i = 0; i < count; i++) {
    hsa_kernel_dispatch_packet_t *packet = &packets[i];
    packet->header = header_of(HSA_PACKET_TYPE_KERNEL_DISPATCH);
    packet->setup = 1;
    packet->workgroup_size_x = 64;
    packet->workgroup_size_y = packet->workgroup_size_z = 1;
    packet->grid_size_x = 64 * (first + i);
    packet->grid_size_y = packet->grid_size_z = 1;
    packet->kernel_object = work->kernel;
    packet->completion_signal = done;
  }
  submit(work->queue, packets, count);
  free(packets);
}

static inline void dispatch_and_wait(const work_t *work, uint32_t first, uint32_t count) {
  hsa_signal_t done = signal_with(count);
  dispatch(work, first, count, done);
  wait_done(done);
  MUST(hsa_signal_destroy(done));
}

static inline void end_work(const work_t *work) {
  MUST(hsa_queue_destroy(work->queue));
  MUST(hsa_executable_destroy(work->executable));
  MUST(hsa_shut_down());
}

#endif
