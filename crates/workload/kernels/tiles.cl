/* Kernels whose work-groups share LDS and meet at barriers. */
#include "geometry.h"

#define REDUCE_ITEMS 256
#define TILE 16

/* partial[g] = sum of the 256 values that work-group g covers; launch with work-groups of 256. */
kernel __attribute__((reqd_work_group_size(REDUCE_ITEMS, 1, 1)))
void reduce_sum(global const uint *values, global uint *partial, uint count) {
  local uint shared[REDUCE_ITEMS];
  uint item = ITEM_X;
  uint i = GROUP_X * REDUCE_ITEMS + item;
  shared[item] = i < count ? values[i] : 0;
  for (uint stride = REDUCE_ITEMS / 2; stride > 0; stride >>= 1) {
    group_barrier();
    if (item < stride)
      shared[item] += shared[item + stride];
  }
  if (item == 0)
    partial[GROUP_X] = shared[0];
}

/* out[x][y] = in[y][x] of a width x height matrix, by tiles in LDS; launch with work-groups of 16 x 16. */
kernel __attribute__((reqd_work_group_size(TILE, TILE, 1)))
void transpose(global const float *in, global float *out, uint width, uint height) {
  local float tile[TILE][TILE + 1]; /* one column more: no bank conflicts on the way out */
  uint x = GROUP_X * TILE + ITEM_X;
  uint y = GROUP_Y * TILE + ITEM_Y;
  if (x < width && y < height)
    tile[ITEM_Y][ITEM_X] = in[y * width + x];
  group_barrier();
  uint column = GROUP_Y * TILE + ITEM_X;
  uint row = GROUP_X * TILE + ITEM_Y;
  if (column < height && row < width)
    out[row * height + column] = tile[ITEM_X][ITEM_Y];
}

/* out = mean of a cell and its four neighbours, border cells copied; launch on a grid of width x height. */
kernel void stencil(global const float *in, global float *out, uint width, uint height) {
  uint x = global_x();
  uint y = global_y();
  if (x >= width || y >= height)
    return;
  uint here = y * width + x;
  if (x == 0 || y == 0 || x == width - 1 || y == height - 1) {
    out[here] = in[here];
    return;
  }
  out[here] = 0.2f * (in[here] + in[here - 1] + in[here + 1] + in[here - width] + in[here + width]);
}
