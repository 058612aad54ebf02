# SPDX-License-Identifier: MIT
"""softmax.py - the library from Python, by ctypes alone: structs of hw/types.h and hw/ops.h by hand."""
import ctypes as c


class Tensor(c.Structure):
    """struct hw_tensor: 112 bytes, frozen."""
    _fields_ = [("buffer", c.c_void_p), ("data", c.c_void_p), ("offset", c.c_uint64), ("dtype", c.c_int32),
                ("rank", c.c_int32), ("extent", c.c_int64 * 4), ("stride", c.c_int64 * 4),
                ("layout", c.c_uint32), ("reserved", c.c_uint32 * 3)]


class Softmax(c.Structure):
    """struct hw_softmax: the tensors, then the scalars. Zero means the default."""
    _fields_ = [("x", Tensor), ("mask", Tensor), ("y", Tensor), ("scale", c.c_float), ("log", c.c_uint32)]


assert c.sizeof(Tensor) == 112
F32, OP_SOFTMAX = 1, 2  # enum hw_dtype; enum hw_op: the position in HW_OPS, from 0

hw = c.CDLL("libhw.so.0")
hw.hw_message.restype = hw.hw_device_name.restype = c.c_char_p
hw.hw_device_default.restype = c.c_void_p  # else ctypes cuts pointers to 32 bits
hw.hw_device_default.argtypes = hw.hw_device_name.argtypes = [c.c_void_p]
hw.hw_queue_open.argtypes = [c.c_void_p, c.c_void_p, c.POINTER(c.c_void_p)]
hw.hw_submit.argtypes = [c.c_void_p, c.c_uint32, c.c_void_p, c.c_size_t]
hw.hw_queue_wait.argtypes = hw.hw_close.argtypes = [c.c_void_p]
hw.hw_close.restype = None


def check(status):
    if status:
        raise RuntimeError(hw.hw_message().decode())


def host(array, *extents):
    """A tensor over a ctypes array of floats. Keep the array until the queue has been waited for."""
    tensor = Tensor()
    check(hw.hw_tensor_host(c.byref(tensor), array, F32, len(extents), (c.c_int64 * len(extents))(*extents)))
    return tensor


context, queue = c.c_void_p(), c.c_void_p()
check(hw.hw_open(None, c.byref(context)))
device = hw.hw_device_default(context)
check(hw.hw_queue_open(device, None, c.byref(queue)))

x, y = (c.c_float * 3)(1, 2, 3), (c.c_float * 3)()
op = Softmax(x=host(x, 3), y=host(y, 3))
check(hw.hw_submit(queue, OP_SOFTMAX, c.byref(op), c.sizeof(op)))
check(hw.hw_queue_wait(queue))
print(hw.hw_device_name(device).decode() + ":", " ".join(f"{value:.3f}" for value in y))
hw.hw_close(context)
