/* SPDX-License-Identifier: MIT */
/* bad */
#include "../plugins/common/x.h"
__attribute__((visibility("default"))) int hw_bad(int nvidia); int hw_bad(int nvidia){return nvidia;}
int other(void); __attribute__((visibility("default"))) int other(void){return 0;}
