/* SPDX-License-Identifier: MIT */
/* y = a * b: one group per ELEMENT_SPAN neighbours of a row. */
BINARY_KERNEL(mul, *)
