// What HIP programs ask of a driver beyond plain allocations: each kind of memory, streams and events, cooperative
// launches, graphs, peers. Prints a line for each that works.
//
// Results of kernels are not computed by the software GPU, so only copies by SDMA are compared.

#include <hip/hip_cooperative_groups.h>
#include <hip/hip_runtime.h>

#include <cstdio>
#include <cstring>
#include <vector>

#define CHECK(call)                                                                                \
  do {                                                                                             \
    hipError_t error = (call);                                                                     \
    if (error != hipSuccess) {                                                                     \
      std::printf("%s: %s\n", #call, hipGetErrorString(error));                                    \
      return false;                                                                                \
    }                                                                                              \
  } while (0)

#define REQUIRE(condition)                                                                         \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      std::printf("not so: %s\n", #condition);                                                     \
      return false;                                                                                \
    }                                                                                              \
  } while (0)

constexpr size_t bytes = 1 << 20;

__global__ void nothing(int *data) {
  if (data && threadIdx.x == 12345)
    *data = 1;
}

__global__ void together(int *data) {
  extern __shared__ int local[];
  local[threadIdx.x] = data ? *data : 0;
  cooperative_groups::this_grid().sync();
}

bool memory_of_every_kind() {
  int *device, *pinned, *managed, *pooled;
  CHECK(hipMalloc(&device, bytes));
  CHECK(hipHostMalloc(&pinned, bytes));
  CHECK(hipMallocManaged(&managed, bytes));
  CHECK(hipMallocAsync(&pooled, bytes, 0));
  std::vector<int> own(bytes / 4, 7);
  CHECK(hipHostRegister(own.data(), bytes, hipHostRegisterDefault));
  managed[5] = 6;
  CHECK(hipMemAdvise(managed, bytes, hipMemAdviseSetPreferredLocation, 0));
  CHECK(hipMemPrefetchAsync(managed, bytes, 0, 0));
  for (int *memory : {device, pinned, managed, pooled, own.data()})
    nothing<<<4, 256>>>(memory);
  CHECK(hipGetLastError());
  CHECK(hipDeviceSynchronize());
  REQUIRE(managed[5] == 6);
  CHECK(hipHostUnregister(own.data()));
  CHECK(hipFreeAsync(pooled, 0));
  CHECK(hipFree(managed));
  CHECK(hipHostFree(pinned));
  CHECK(hipFree(device));
  return true;
}

bool streams_and_events() {
  hipStream_t first, second;
  hipEvent_t event;
  CHECK(hipStreamCreate(&first));
  CHECK(hipStreamCreate(&second));
  CHECK(hipEventCreate(&event));
  int *device, *pinned;
  CHECK(hipMalloc(&device, bytes));
  CHECK(hipHostMalloc(&pinned, 2 * bytes));
  for (size_t i = 0; i < bytes / 4; i++)
    pinned[i] = int(i * 2654435761u);
  CHECK(hipMemcpyAsync(device, pinned, bytes, hipMemcpyHostToDevice, first));
  CHECK(hipEventRecord(event, first));
  CHECK(hipStreamWaitEvent(second, event, 0));
  CHECK(hipMemcpyAsync(pinned + bytes / 4, device, bytes, hipMemcpyDeviceToHost, second));
  CHECK(hipStreamSynchronize(second));
  REQUIRE(std::memcmp(pinned, pinned + bytes / 4, bytes) == 0);
  CHECK(hipHostFree(pinned));
  CHECK(hipFree(device));
  CHECK(hipEventDestroy(event));
  CHECK(hipStreamDestroy(first));
  CHECK(hipStreamDestroy(second));
  return true;
}

bool cooperative_launch() {
  int *data = nullptr;
  void *arguments[] = {&data};
  CHECK(hipLaunchCooperativeKernel(reinterpret_cast<void *>(together), dim3(8), dim3(256), arguments, 1024, 0));
  CHECK(hipDeviceSynchronize());
  return true;
}

bool graph() {
  hipStream_t stream;
  hipGraph_t graph;
  hipGraphExec_t executable;
  CHECK(hipStreamCreate(&stream));
  CHECK(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal));
  nothing<<<4, 256, 0, stream>>>(nullptr);
  nothing<<<8, 64, 0, stream>>>(nullptr);
  CHECK(hipStreamEndCapture(stream, &graph));
  CHECK(hipGraphInstantiate(&executable, graph, nullptr, nullptr, 0));
  for (int i = 0; i < 10; i++)
    CHECK(hipGraphLaunch(executable, stream));
  CHECK(hipStreamSynchronize(stream));
  CHECK(hipGraphExecDestroy(executable));
  CHECK(hipGraphDestroy(graph));
  CHECK(hipStreamDestroy(stream));
  return true;
}

bool virtual_memory() {
  hipMemAllocationProp properties = {};
  properties.type = hipMemAllocationTypePinned;
  properties.location = {hipMemLocationTypeDevice, 0};
  size_t granularity;
  CHECK(hipMemGetAllocationGranularity(&granularity, &properties, hipMemAllocationGranularityMinimum));
  size_t size = (bytes + granularity - 1) / granularity * granularity;
  void *address;
  hipMemGenericAllocationHandle_t handle;
  CHECK(hipMemAddressReserve(&address, size, 0, nullptr, 0));
  CHECK(hipMemCreate(&handle, size, &properties, 0));
  CHECK(hipMemMap(address, size, 0, handle, 0));
  hipMemAccessDesc access = {{hipMemLocationTypeDevice, 0}, hipMemAccessFlagsProtReadWrite};
  CHECK(hipMemSetAccess(address, size, &access, 1));
  nothing<<<4, 256>>>(static_cast<int *>(address));
  CHECK(hipDeviceSynchronize());
  CHECK(hipMemUnmap(address, size));
  CHECK(hipMemRelease(handle));
  CHECK(hipMemAddressFree(address, size));
  return true;
}

bool peers() {
  // HIP copies up to a megabyte between GPUs by a kernel.
  constexpr size_t bytes = 4 << 20;
  int count;
  CHECK(hipGetDeviceCount(&count));
  if (count < 2)
    return true;
  int can = 0;
  CHECK(hipDeviceCanAccessPeer(&can, 0, 1));
  REQUIRE(can == 1);
  void *near, *far;
  std::vector<unsigned char> sent(bytes), back(bytes);
  for (size_t i = 0; i < bytes; i++)
    sent[i] = (unsigned char)(i ^ i >> 8);
  CHECK(hipSetDevice(1));
  CHECK(hipMalloc(&far, bytes));
  CHECK(hipSetDevice(0));
  CHECK(hipDeviceEnablePeerAccess(1, 0));
  CHECK(hipMalloc(&near, bytes));
  CHECK(hipMemcpy(near, sent.data(), bytes, hipMemcpyHostToDevice));
  // A stream of its own: the other one's engine is for copies to the device, and HIP would fall back to a kernel.
  hipStream_t between;
  CHECK(hipStreamCreate(&between));
  CHECK(hipMemcpyPeerAsync(far, 1, near, 0, bytes, between));
  CHECK(hipStreamSynchronize(between));
  CHECK(hipStreamDestroy(between));
  CHECK(hipSetDevice(1));
  CHECK(hipMemcpy(back.data(), far, bytes, hipMemcpyDeviceToHost));
  REQUIRE(std::memcmp(sent.data(), back.data(), bytes) == 0);
  CHECK(hipFree(far));
  CHECK(hipSetDevice(0));
  CHECK(hipFree(near));
  return true;
}

int main() {
  struct {
    const char *name;
    bool (*run)();
  } const features[] = {
      {"memory of every kind", memory_of_every_kind}, {"streams and events", streams_and_events},
      {"cooperative launch", cooperative_launch},     {"graph", graph},
      {"virtual memory", virtual_memory},             {"peers", peers},
  };
  int failures = 0;
  for (auto &feature : features) {
    bool works = feature.run();
    std::printf("%s: %s\n", feature.name, works ? "works" : "FAILS");
    failures += !works;
  }
  return failures;
}
