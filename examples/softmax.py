# SPDX-License-Identifier: MIT
"""softmax.py - the library from Python, by ctypes alone. It asks the library for the fields of each op, so submit()
takes any op by its name."""
import ctypes as c


class Tensor(c.Structure):
    """struct hw_tensor: 112 bytes, frozen."""
    _fields_ = [("buffer", c.c_void_p), ("data", c.c_void_p), ("offset", c.c_uint64), ("dtype", c.c_int32),
                ("rank", c.c_int32), ("extent", c.c_int64 * 4), ("stride", c.c_int64 * 4),
                ("layout", c.c_uint32), ("reserved", c.c_uint32 * 3)]


class Field(c.Structure):
    """struct hw_field_info: one field of an op's struct."""
    _fields_ = [("size", c.c_uint32), ("type", c.c_int32), ("role", c.c_int32), ("offset", c.c_uint32),
                ("bytes", c.c_uint32), ("reserved", c.c_uint32), ("name", c.c_char_p), ("zero", c.c_char_p)]


assert c.sizeof(Tensor) == 112
F32 = 1  # enum hw_dtype
TYPES = [None, Tensor, c.c_int32, c.c_int64, c.c_float, c.c_uint32, c.c_uint32]  # by enum hw_field_type

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


def submit(queue, name, **values):
    """Submits the op of this name. Fields that are not given are zero, which means their default."""
    op, field, fields = c.c_uint32(), Field(size=c.sizeof(Field)), []
    check(hw.hw_op_find(name.encode(), c.byref(op)))
    while not hw.hw_op_field(op, len(fields), c.byref(field)):
        fields.append((field.name.decode(), TYPES[field.type]))
    args = type(name, (c.Structure,), {"_fields_": fields})(**values)
    check(hw.hw_submit(queue, op, c.byref(args), c.sizeof(args)))


context, queue = c.c_void_p(), c.c_void_p()
check(hw.hw_open(None, c.byref(context)))
device = hw.hw_device_default(context)
check(hw.hw_queue_open(device, None, c.byref(queue)))

x, y = (c.c_float * 3)(1, 2, 3), (c.c_float * 3)()
submit(queue, "softmax", x=host(x, 3), y=host(y, 3))
check(hw.hw_queue_wait(queue))
print(hw.hw_device_name(device).decode() + ":", " ".join(f"{value:.3f}" for value in y))
hw.hw_close(context)
