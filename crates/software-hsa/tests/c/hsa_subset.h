/* What the suite needs of hsa.h and hsa_ext_amd.h, so that a plain clone builds it. With WAVESCOPE_SYSTEM_HSA the
 * system's own headers are used instead: the suite then also checks these declarations. */
#ifndef HSA_SUBSET_H
#define HSA_SUBSET_H

#ifdef WAVESCOPE_SYSTEM_HSA
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>
#else

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint32_t hsa_status_t;
#define HSA_STATUS_SUCCESS 0u
#define HSA_STATUS_INFO_BREAK 1u
#define HSA_STATUS_ERROR_INVALID_ARGUMENT 0x1001u

typedef struct { uint64_t handle; } hsa_agent_t;
typedef struct { uint64_t handle; } hsa_signal_t;
typedef struct { uint64_t handle; } hsa_executable_t;
typedef struct { uint64_t handle; } hsa_executable_symbol_t;
typedef struct { uint64_t handle; } hsa_code_object_reader_t;
typedef struct { uint64_t handle; } hsa_loaded_code_object_t;
typedef struct { uint64_t handle; } hsa_amd_memory_pool_t;
typedef int64_t hsa_signal_value_t;
typedef uint32_t hsa_queue_type32_t;

typedef struct {
  hsa_queue_type32_t type;
  uint32_t features;
  void *base_address;
  hsa_signal_t doorbell_signal;
  uint32_t size;
  uint32_t reserved1;
  uint64_t id;
} hsa_queue_t;

typedef struct {
  uint16_t header;
  uint16_t reserved0;
  uint32_t reserved1;
  hsa_signal_t dep_signal[5];
  uint64_t reserved2;
  hsa_signal_t completion_signal;
} hsa_barrier_and_packet_t;

typedef struct {
  uint16_t header;
  uint16_t setup;
  uint16_t workgroup_size_x, workgroup_size_y, workgroup_size_z;
  uint16_t reserved0;
  uint32_t grid_size_x, grid_size_y, grid_size_z;
  uint32_t private_segment_size;
  uint32_t group_segment_size;
  uint64_t kernel_object;
  void *kernarg_address;
  uint64_t reserved2;
  hsa_signal_t completion_signal;
} hsa_kernel_dispatch_packet_t;

typedef struct { uint64_t start, end; } hsa_amd_profiling_dispatch_time_t;

typedef uint32_t hsa_agent_info_t;
#define HSA_AGENT_INFO_DEVICE 17u
#define HSA_AGENT_INFO_QUEUE_MIN_SIZE 13u
#define HSA_AGENT_INFO_QUEUE_MAX_SIZE 14u
#define HSA_DEVICE_TYPE_GPU 1u
typedef uint32_t hsa_system_info_t;
#define HSA_SYSTEM_INFO_TIMESTAMP 2u
#define HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY 3u
#define HSA_QUEUE_TYPE_MULTI 0u
#define HSA_PACKET_TYPE_KERNEL_DISPATCH 2
#define HSA_PACKET_TYPE_BARRIER_AND 3
#define HSA_PACKET_TYPE_BARRIER_OR 5
typedef uint32_t hsa_signal_condition_t;
#define HSA_SIGNAL_CONDITION_EQ 0u
#define HSA_SIGNAL_CONDITION_NE 1u
#define HSA_SIGNAL_CONDITION_LT 2u
#define HSA_SIGNAL_CONDITION_GTE 3u
typedef uint32_t hsa_wait_state_t;
#define HSA_WAIT_STATE_BLOCKED 0u
typedef uint32_t hsa_profile_t;
#define HSA_PROFILE_BASE 0u
typedef uint32_t hsa_default_float_rounding_mode_t;
#define HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT 0u
typedef uint32_t hsa_executable_symbol_info_t;
#define HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT 22u
#define HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_KERNARG_SEGMENT_SIZE 11u
#define HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_GROUP_SEGMENT_SIZE 13u

typedef bool (*hsa_amd_signal_handler)(hsa_signal_value_t value, void *arg);

hsa_status_t hsa_init(void);
hsa_status_t hsa_shut_down(void);
hsa_status_t hsa_system_get_info(hsa_system_info_t attribute, void *value);
hsa_status_t hsa_status_string(hsa_status_t status, const char **status_string);
hsa_status_t hsa_iterate_agents(hsa_status_t (*callback)(hsa_agent_t, void *), void *data);
hsa_status_t hsa_agent_get_info(hsa_agent_t agent, hsa_agent_info_t attribute, void *value);
hsa_status_t hsa_queue_create(hsa_agent_t agent, uint32_t size, hsa_queue_type32_t type,
                              void (*callback)(hsa_status_t, hsa_queue_t *, void *), void *data,
                              uint32_t private_segment_size, uint32_t group_segment_size, hsa_queue_t **queue);
hsa_status_t hsa_queue_destroy(hsa_queue_t *queue);
uint64_t hsa_queue_load_read_index_scacquire(const hsa_queue_t *queue);
uint64_t hsa_queue_load_write_index_relaxed(const hsa_queue_t *queue);
uint64_t hsa_queue_add_write_index_relaxed(const hsa_queue_t *queue, uint64_t value);
hsa_status_t hsa_signal_create(hsa_signal_value_t initial_value, uint32_t num_consumers,
                               const hsa_agent_t *consumers, hsa_signal_t *signal);
hsa_status_t hsa_signal_destroy(hsa_signal_t signal);
hsa_signal_value_t hsa_signal_load_scacquire(hsa_signal_t signal);
void hsa_signal_store_screlease(hsa_signal_t signal, hsa_signal_value_t value);
void hsa_signal_add_scacq_screl(hsa_signal_t signal, hsa_signal_value_t value);
void hsa_signal_subtract_scacq_screl(hsa_signal_t signal, hsa_signal_value_t value);
void hsa_signal_and_scacq_screl(hsa_signal_t signal, hsa_signal_value_t value);
void hsa_signal_or_scacq_screl(hsa_signal_t signal, hsa_signal_value_t value);
void hsa_signal_xor_scacq_screl(hsa_signal_t signal, hsa_signal_value_t value);
hsa_signal_value_t hsa_signal_exchange_scacq_screl(hsa_signal_t signal, hsa_signal_value_t value);
hsa_signal_value_t hsa_signal_cas_scacq_screl(hsa_signal_t signal, hsa_signal_value_t expected,
                                              hsa_signal_value_t value);
hsa_signal_value_t hsa_signal_wait_scacquire(hsa_signal_t signal, hsa_signal_condition_t condition,
                                             hsa_signal_value_t compare_value, uint64_t timeout_hint,
                                             hsa_wait_state_t wait_state_hint);
uint32_t hsa_amd_signal_wait_any(uint32_t signal_count, hsa_signal_t *signals, hsa_signal_condition_t *conds,
                                 hsa_signal_value_t *values, uint64_t timeout_hint, hsa_wait_state_t wait_hint,
                                 hsa_signal_value_t *satisfying_value);
hsa_status_t hsa_amd_signal_async_handler(hsa_signal_t signal, hsa_signal_condition_t cond,
                                          hsa_signal_value_t value, hsa_amd_signal_handler handler, void *arg);
hsa_status_t hsa_amd_profiling_set_profiler_enabled(hsa_queue_t *queue, int enable);
hsa_status_t hsa_amd_profiling_get_dispatch_time(hsa_agent_t agent, hsa_signal_t signal,
                                                 hsa_amd_profiling_dispatch_time_t *time);
hsa_status_t hsa_code_object_reader_create_from_memory(const void *code_object, size_t size,
                                                       hsa_code_object_reader_t *code_object_reader);
hsa_status_t hsa_code_object_reader_destroy(hsa_code_object_reader_t code_object_reader);
hsa_status_t hsa_executable_create_alt(hsa_profile_t profile, hsa_default_float_rounding_mode_t mode,
                                       const char *options, hsa_executable_t *executable);
hsa_status_t hsa_executable_destroy(hsa_executable_t executable);
hsa_status_t hsa_executable_load_agent_code_object(hsa_executable_t executable, hsa_agent_t agent,
                                                   hsa_code_object_reader_t code_object_reader, const char *options,
                                                   hsa_loaded_code_object_t *loaded_code_object);
hsa_status_t hsa_executable_freeze(hsa_executable_t executable, const char *options);
hsa_status_t hsa_executable_get_symbol_by_name(hsa_executable_t executable, const char *symbol_name,
                                               const hsa_agent_t *agent, hsa_executable_symbol_t *symbol);
hsa_status_t hsa_executable_symbol_get_info(hsa_executable_symbol_t executable_symbol,
                                            hsa_executable_symbol_info_t attribute, void *value);

#endif
#endif
