/* Where a work-item stands, from the hardware's own registers and the dispatch packet.
 *
 * The OpenCL library's get_global_id reads the hidden kernel arguments that an OpenCL or HIP runtime fills in. These
 * kernels are launched by a bare HSA application, so they read the work-group size from the dispatch packet instead
 * (hsa.h, hsa_kernel_dispatch_packet_t: workgroup_size_x/y/z at bytes 4, 6, 8).
 */
#define ITEM_X __builtin_amdgcn_workitem_id_x()
#define ITEM_Y __builtin_amdgcn_workitem_id_y()
#define GROUP_X __builtin_amdgcn_workgroup_id_x()
#define GROUP_Y __builtin_amdgcn_workgroup_id_y()

static inline uint group_size_x(void) {
  return ((const __constant ushort *)__builtin_amdgcn_dispatch_ptr())[2];
}

static inline uint group_size_y(void) {
  return ((const __constant ushort *)__builtin_amdgcn_dispatch_ptr())[3];
}

static inline uint global_x(void) { return GROUP_X * group_size_x() + ITEM_X; }
static inline uint global_y(void) { return GROUP_Y * group_size_y() + ITEM_Y; }

/* All LDS writes of the work-group before it are visible to all work-items after it. */
static inline void group_barrier(void) {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
