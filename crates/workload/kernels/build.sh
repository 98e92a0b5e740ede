#!/bin/sh
# Builds the committed code objects from the .cl files beside this script; README.md says when and with what.
#   build.sh [CLANG]      CLANG: a clang with the amdgcn target (default: clang), lld beside it
set -eu
cd "$(dirname "$0")"
clang=${1:-clang}
for source in vectors tiles; do
    for gfx in gfx942 gfx90a gfx950 gfx1100 gfx1201; do
        "$clang" -x cl -cl-std=CL2.0 --target=amdgcn-amd-amdhsa -mcpu=$gfx -mcode-object-version=5 \
            -nogpulib -O2 -Wall -fvisibility=hidden -ffunction-sections \
            -Wl,--gc-sections,--version-script=exports.ld "$source.cl" -o "$source-$gfx.co"
    done
done
