/* SPDX-License-Identifier: MIT */
/* curves.h - functions over the exponential that several texts need. */
#ifndef CPU_CURVES_H
#define CPU_CURVES_H

#include "words.h"

#include <float.h>

/* A polynomial near zero, where 1 - 2 / (e^2x + 1) would cancel. */
INLINE vf tanh_of(vf x)
{
    const vf one = vf_set(1.0f), size = vf_abs(x), s = x * x;
    vf p = vf_fma(vf_set(-5.70498872745e-3f), s, vf_set(2.06390887954e-2f));
    p = vf_fma(p, s, vf_set(-5.37397155531e-2f));
    p = vf_fma(p, s, vf_set(1.33314422036e-1f));
    p = vf_fma(p, s, vf_set(-3.33332819422e-1f));
    p = vf_fma(p * s, x, x);
    const vf above = one - vf_set(2.0f) / (vf_exp(size + size) + one);
    const vf far = vf_if_less(x, vf_set(0.0f), vf_set(0.0f) - above, above);
    return vf_if_less(size, vf_set(0.625f), p, far);
}

/* slope * mask, where -inf stays -inf. */
INLINE vf scaled_mask(vf mask, vf slope)
{
    return vf_if_less(mask, vf_set(-FLT_MAX), mask, slope * mask);
}

#endif
