/* SPDX-License-Identifier: MIT */
/* fake_nvrtc.h - settings and counters of the stand-in for NVRTC. */
#ifndef FAKE_NVRTC_H
#define FAKE_NVRTC_H

struct fake_nvrtc {
    int version;  /* 12040: CUDA 12.4; 0: MAJOR.0, as it was built */
    int newest;   /* the newest architecture that it compiles for: 90; 0: none */
    int calls;    /* of its functions, except nvrtcGetErrorString and nvrtcDestroyProgram */
    int fails;    /* the number of the call that fails; 0: none */
    int result;   /* with which it fails */
    int compiled; /* programs */
    int programs; /* that exist */
    char option[64]; /* of the last compilation */
};

/* The library exports it under this name. */
struct fake_nvrtc *fake_nvrtc_state(void);

#endif
