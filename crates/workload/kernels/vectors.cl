/* Kernels without work-group co-operation: one work-item, one result. */
#include "geometry.h"

/* Does nothing: the cheapest wave there is. */
kernel void empty(void) {}

/* sum[i] = a[i] + b[i] for i < count. */
kernel void vector_add(global const float *a, global const float *b, global float *sum, uint count) {
  uint i = global_x();
  if (i < count)
    sum[i] = a[i] + b[i];
}

/* y[i] = factor * x[i] + y[i] for i < count. */
kernel void saxpy(global const float *x, global float *y, float factor, uint count) {
  uint i = global_x();
  if (i < count)
    y[i] = factor * x[i] + y[i];
}

/* steps[i] = length of the Collatz sequence of i + 1: lanes of one wave leave the loop at different times. */
kernel void collatz(global uint *steps, uint count) {
  uint i = global_x();
  if (i >= count)
    return;
  uint n = i + 1, taken = 0;
  while (n != 1) {
    n = (n & 1) ? 3 * n + 1 : n >> 1;
    taken++;
  }
  steps[i] = taken;
}
