# SPDX-License-Identifier: MIT
"""softmax.py - the library from Python, by ctypes alone. It asks the library for the fields of each op, so
Queue.submit() takes any op by its name. Operands are ctypes arrays, NumPy arrays or PyTorch tensors of the CPU."""
import ctypes as c
import functools


class Tensor(c.Structure):
    """struct hw_tensor: 112 bytes, frozen. It borrows the memory of `array`."""
    _fields_ = [("buffer", c.c_void_p), ("data", c.c_void_p), ("offset", c.c_uint64), ("dtype", c.c_int32),
                ("rank", c.c_int32), ("extent", c.c_int64 * 4), ("stride", c.c_int64 * 4),
                ("layout", c.c_uint32), ("reserved", c.c_uint32 * 3)]
    array = None


class Field(c.Structure):
    """struct hw_field_info: one field of an op's struct."""
    _fields_ = [("size", c.c_uint32), ("type", c.c_int32), ("role", c.c_int32), ("offset", c.c_uint32),
                ("bytes", c.c_uint32), ("reserved", c.c_uint32), ("name", c.c_char_p), ("zero", c.c_char_p)]


assert c.sizeof(Tensor) == 112
DTYPES = {"f4": 1, "float32": 1, "f2": 2, "float16": 2, "bfloat16": 3, "i1": 4, "int8": 4, "i4": 5, "int32": 5,
          "i8": 6, "int64": 6}  # enum hw_dtype, by the names of NumPy and PyTorch
TYPES = [None, Tensor, c.c_int32, c.c_int64, c.c_float, c.c_uint32, c.c_uint32]  # by enum hw_field_type

hw = c.CDLL("libhw.so.0")


def declare(name, result, *arguments):
    """Without its types, ctypes would pass and return 32 bits of a pointer."""
    function = getattr(hw, name)
    function.restype, function.argtypes = result, arguments


declare("hw_message", c.c_char_p)
declare("hw_open", c.c_int32, c.c_void_p, c.POINTER(c.c_void_p))
declare("hw_close", None, c.c_void_p)
declare("hw_device_default", c.c_void_p, c.c_void_p)
declare("hw_device_name", c.c_char_p, c.c_void_p)
declare("hw_queue_open", c.c_int32, c.c_void_p, c.c_void_p, c.POINTER(c.c_void_p))
declare("hw_queue_wait", c.c_int32, c.c_void_p)
declare("hw_op_find", c.c_int32, c.c_char_p, c.POINTER(c.c_uint32))
declare("hw_op_field", c.c_int32, c.c_uint32, c.c_uint32, c.POINTER(Field))
declare("hw_submit", c.c_int32, c.c_void_p, c.c_uint32, c.c_void_p, c.c_size_t)
declare("hw_tensor_host", c.c_int32, c.POINTER(Tensor), c.c_void_p, c.c_int32, c.c_int32, c.POINTER(c.c_int64))


def check(status):
    if status:
        raise RuntimeError(hw.hw_message().decode())


def describe(array):
    """Returns address, dtype, extents and strides in bytes, or None if contiguous."""
    if hasattr(array, "data_ptr"):  # PyTorch
        if array.device.type != "cpu":
            raise TypeError(f"the tensor is in memory of {array.device}; pass tensor.cpu()")
        size = array.element_size()
        return array.data_ptr(), str(array.dtype)[6:], tuple(array.shape), [size * s for s in array.stride()]
    if hasattr(array, "__array_interface__"):  # NumPy
        facts = array.__array_interface__
        if facts["typestr"][0] == ">":
            raise TypeError("the array has another byte order")
        return facts["data"][0], facts["typestr"][1:], facts["shape"], facts["strides"]
    if isinstance(array, c.Array) and array._type_ is c.c_float:
        return c.addressof(array), "f4", (len(array),), None
    raise TypeError(f"{type(array).__name__}: pass a ctypes array of c_float, a NumPy array or a PyTorch tensor")


def host(array):
    """A tensor over the memory of an array, which is not copied."""
    address, dtype, extents, strides = describe(array)
    if dtype not in DTYPES:
        raise TypeError(f"{dtype}: this example knows {', '.join(DTYPES)}")
    tensor = Tensor()
    check(hw.hw_tensor_host(tensor, address, DTYPES[dtype], len(extents), (c.c_int64 * len(extents))(*extents)))
    for i, stride in enumerate(strides or ()):
        tensor.stride[i] = stride
    tensor.array = array
    return tensor


@functools.lru_cache(maxsize=None)
def struct_of(name):
    """The number and the struct of the op with this name."""
    op, field, fields = c.c_uint32(), Field(size=c.sizeof(Field)), []
    check(hw.hw_op_find(name.encode(), op))
    while not hw.hw_op_field(op.value, len(fields), field):
        fields.append((field.name.decode(), TYPES[field.type]))
    return op.value, type(name, (c.Structure,), {"_fields_": fields})


class Queue:
    def __init__(self, device):
        self.queue, self.borrowed = c.c_void_p(), []
        check(hw.hw_queue_open(device, None, self.queue))

    def submit(self, name, **values):
        """Submits the op of this name. Fields that are not given are zero, which means their default. The queue
        keeps the arrays until wait(), also temporary ones."""
        op, struct = struct_of(name)
        args = struct(**values)
        self.borrowed.append(values)
        check(hw.hw_submit(self.queue, op, c.byref(args), c.sizeof(args)))

    def wait(self):
        check(hw.hw_queue_wait(self.queue))
        self.borrowed.clear()


if __name__ == "__main__":
    context = c.c_void_p()
    check(hw.hw_open(None, context))
    device = hw.hw_device_default(context)
    queue = Queue(device)

    x, y = (c.c_float * 3)(1, 2, 3), (c.c_float * 3)()
    queue.submit("softmax", x=host(x), y=host(y))
    queue.wait()
    print(hw.hw_device_name(device).decode() + ":", " ".join(f"{value:.3f}" for value in y))

    # NumPy:   queue.submit("softmax", x=host(numpy.asfortranarray(a)), y=host(b))
    # PyTorch: queue.submit("softmax", x=host(t.contiguous()), y=host(u))
    hw.hw_close(context)
