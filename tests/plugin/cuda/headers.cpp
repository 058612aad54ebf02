/* SPDX-License-Identifier: MIT */
/* headers.cpp - the functions, constants and structs of the CUDA plugin as cuda.h declares them.
 * listed.def is cuda.def with the driver's names as identifiers, driver.h the plugin's. */
#include <cuda.h>
#include <nvrtc.h>

#include "driver.h"
#include "vendor.hpp"

#define REQUIRED SAME_CALL
#define OPTIONAL SAME_CALL
#define CONSTANT SAME_NUMBER
#include "listed.def"
#define REQUIRED SAME_CALL
#define CONSTANT SAME_NUMBER
#include "nvrtc.def"

SAME_PLACE(copy_rows, from_x, CUDA_MEMCPY2D, srcXInBytes)
SAME_PLACE(copy_rows, from_y, CUDA_MEMCPY2D, srcY)
SAME_PLACE(copy_rows, from_kind, CUDA_MEMCPY2D, srcMemoryType)
SAME_PLACE(copy_rows, from_host, CUDA_MEMCPY2D, srcHost)
SAME_PLACE(copy_rows, from, CUDA_MEMCPY2D, srcDevice)
SAME_PLACE(copy_rows, from_array, CUDA_MEMCPY2D, srcArray)
SAME_PLACE(copy_rows, from_pitch, CUDA_MEMCPY2D, srcPitch)
SAME_PLACE(copy_rows, to_x, CUDA_MEMCPY2D, dstXInBytes)
SAME_PLACE(copy_rows, to_y, CUDA_MEMCPY2D, dstY)
SAME_PLACE(copy_rows, to_kind, CUDA_MEMCPY2D, dstMemoryType)
SAME_PLACE(copy_rows, to_host, CUDA_MEMCPY2D, dstHost)
SAME_PLACE(copy_rows, to, CUDA_MEMCPY2D, dstDevice)
SAME_PLACE(copy_rows, to_array, CUDA_MEMCPY2D, dstArray)
SAME_PLACE(copy_rows, to_pitch, CUDA_MEMCPY2D, dstPitch)
SAME_PLACE(copy_rows, bytes, CUDA_MEMCPY2D, WidthInBytes)
SAME_PLACE(copy_rows, rows, CUDA_MEMCPY2D, Height)

SAME_PLACE(launch_attribute, id, CUlaunchAttribute, id)
SAME_PLACE(launch_attribute, value, CUlaunchAttribute,
           value.programmaticStreamSerializationAllowed)
static_assert(sizeof(launch_attribute) == sizeof(CUlaunchAttribute),
              "an attribute has another size");

SAME_PLACE(launch_config, groups[0], CUlaunchConfig, gridDimX)
SAME_PLACE(launch_config, groups[2], CUlaunchConfig, gridDimZ)
SAME_PLACE(launch_config, threads[0], CUlaunchConfig, blockDimX)
SAME_PLACE(launch_config, threads[2], CUlaunchConfig, blockDimZ)
SAME_PLACE(launch_config, shared, CUlaunchConfig, sharedMemBytes)
SAME_PLACE(launch_config, stream, CUlaunchConfig, hStream)
SAME_PLACE(launch_config, attributes, CUlaunchConfig, attrs)
SAME_PLACE(launch_config, attribute_count, CUlaunchConfig, numAttrs)
