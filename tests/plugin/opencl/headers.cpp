/* SPDX-License-Identifier: MIT */
/* headers.cpp - the functions, constants and errors of the OpenCL plugin as Khronos declares
 * them. listed.def is opencl.def with Khronos' names as identifiers. */
#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <CL/cl_ext.h>

#include "vendor.hpp"

#define REQUIRED                     SAME_CALL
#define OPTIONAL                     SAME_CALL
#define CONSTANT                     SAME_NUMBER
#define FAILURE(name, value, status) SAME_NUMBER(name, value, CL_##name)
#include "listed.def"
