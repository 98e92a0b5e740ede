// A vector addition as HIP programs are: device query, allocations, copies both ways, launches, events.
//
// The software GPU runs the waves but does not compute their results, so only what SDMA copied is compared.

#include <hip/hip_runtime.h>

#include <cstdio>
#include <vector>

#define CHECK(call)                                                                                \
  do {                                                                                             \
    hipError_t error = (call);                                                                     \
    if (error != hipSuccess) {                                                                     \
      std::printf("%s: %s\n", #call, hipGetErrorString(error));                                    \
      return 1;                                                                                    \
    }                                                                                              \
  } while (0)

__global__ void vector_add(const float *a, const float *b, float *sum, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count)
    sum[i] = a[i] + b[i];
}

int main() {
  constexpr int count = 1 << 20;
  constexpr size_t bytes = count * sizeof(float);
  hipDeviceProp_t properties;
  CHECK(hipGetDeviceProperties(&properties, 0));
  std::vector<float> a(count, 1.5f), b(count, 2.5f), back(count);
  float *device_a, *device_b, *device_sum;
  CHECK(hipMalloc(&device_a, bytes));
  CHECK(hipMalloc(&device_b, bytes));
  CHECK(hipMalloc(&device_sum, bytes));
  CHECK(hipMemcpy(device_a, a.data(), bytes, hipMemcpyHostToDevice));
  CHECK(hipMemcpy(device_b, b.data(), bytes, hipMemcpyHostToDevice));
  hipEvent_t start, stop;
  CHECK(hipEventCreate(&start));
  CHECK(hipEventCreate(&stop));
  CHECK(hipEventRecord(start));
  for (int launch = 0; launch < 10; launch++)
    vector_add<<<count / 256, 256>>>(device_a, device_b, device_sum, count);
  CHECK(hipGetLastError());
  CHECK(hipEventRecord(stop));
  CHECK(hipEventSynchronize(stop));
  float milliseconds = 0;
  CHECK(hipEventElapsedTime(&milliseconds, start, stop));
  // A stream of its own: on gfx90a HIP reuses a stream's engine for writing, which cannot read, and falls back to a kernel.
  hipStream_t reader;
  CHECK(hipStreamCreate(&reader));
  CHECK(hipMemcpyAsync(back.data(), device_b, bytes, hipMemcpyDeviceToHost, reader));
  CHECK(hipStreamSynchronize(reader));
  for (int i = 0; i < count; i++)
    if (back[i] != b[i]) {
      std::printf("element %d came back as %f\n", i, back[i]);
      return 1;
    }
  CHECK(hipFree(device_a));
  CHECK(hipFree(device_b));
  CHECK(hipFree(device_sum));
  std::printf("%.6s done %s\n", properties.gcnArchName, milliseconds > 0 ? "in time" : "in no time");
}
