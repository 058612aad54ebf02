/* SPDX-License-Identifier: MIT */
/* The portable kernels in CUDA, one form of them: compiled to PTX once for each form of
 * kernel_forms in kernels/meson.build. */
#define JOIN_(a, b, c)    a##_##b##_##c
#define JOIN(a, b, c)     JOIN_(a, b, c)
#if !defined(FORM_MIXED)
#define KERNEL_NAME(name) JOIN(name, ACT, WGT)
#endif
#include "dialect/cuda.h"

#include "args.h"

#include "prelude/math.h"

#include "prelude/storage.h"

#include "prelude/quantise.h"

#include "prelude/group.h"

#include "prelude/product.h"

#if defined(FORM_MIXED)
#include "text_mixed.h"
#else
#include "text_weighted.h"
#if defined(FORM_PLAIN)
#include "text_plain.h"
#endif
#endif
