/* SPDX-License-Identifier: MIT */
/* rival_headers.cpp - the functions and constants of cuDNN that the command uses, as cudnn.h
 * declares them. listed.def is cudnn.def with the functions' names as identifiers. */
#include <cudnn.h>

#include "vendor.hpp"

#define REQUIRED SAME_CALL
#define CONSTANT SAME_NUMBER
#include "listed.def"
