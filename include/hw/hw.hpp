/* SPDX-License-Identifier: MIT */
/* hw/hw.hpp - the library for C++17: handles that free themselves, errors as exceptions, and
 * ops without the keyword `struct`. It is a thin layer over hw.h and interop.h; pass the result of
 * get() to their functions:
 *
 *   hw::context context = hw::open();
 *   hw::queue queue = hw::open_queue(hw_device_default(context.get()));
 *
 *   hw::softmax op{};
 *   op.x = hw::host(x, HW_F32, { rows, cols });
 *   op.y = hw::host(y, HW_F32, { rows, cols });
 *   hw::submit(queue.get(), op);
 *   hw::check(hw_queue_wait(queue.get()));
 *
 * A handle must not outlive the object that it was made from: declare the context first, then
 * queues, buffers, events and graphs, and wait for a queue before the buffers that it uses go
 * out of scope. */
#ifndef HW_HW_HPP
#define HW_HW_HPP

#include "hw.h"
#include "interop.h"

#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <utility>

namespace hw {

/* A status other than HW_OK; what() is the thread's message. */
class error : public std::runtime_error {
  public:
    explicit error(hw_status status) : std::runtime_error(hw_message()), status_(status)
    {
    }
    hw_status status() const noexcept
    {
        return status_;
    }

  private:
    hw_status status_;
};

inline void check(hw_status status)
{
    if (status != HW_OK)
        throw error(status);
}

/* ---- Handles ---- */

template <typename T, void (*release)(T *)> struct releaser {
    void operator()(T *object) const noexcept
    {
        release(object);
    }
};
template <typename T, void (*release)(T *)>
using handle = std::unique_ptr<T, releaser<T, release>>;

using context = handle<hw_context, hw_close>;
using queue = handle<hw_queue, hw_queue_close>;
using buffer = handle<hw_buffer, hw_buffer_free>;
using event = handle<hw_event, hw_event_free>;
using graph = handle<hw_graph, hw_graph_free>;
using kernel = handle<hw_kernel, hw_kernel_free>;

inline context open(const hw_options *options = nullptr)
{
    hw_context *made = nullptr;
    check(hw_open(options, &made));
    return context(made);
}

/* Searches for plugins again. Nothing that is in use changes. */
inline void rescan(hw_context *made)
{
    check(hw_rescan(made));
}

inline queue open_queue(hw_device *device, const hw_queue_options *options = nullptr)
{
    hw_queue *made = nullptr;
    check(hw_queue_open(device, options, &made));
    return queue(made);
}

inline event create_event(hw_device *device, uint32_t flags = 0)
{
    hw_event *made = nullptr;
    check(hw_event_create(device, flags, &made));
    return event(made);
}

/* Calls `record`, a function without arguments, and returns a graph of the work that it submits to
 * the queue. If `record` throws, the recording is discarded. */
template <typename F> graph record_graph(hw_queue *on, F &&record)
{
    hw_graph *made = nullptr;
    check(hw_queue_record(on));
    try {
        std::forward<F>(record)();
    } catch (...) {
        if (hw_queue_end(on, &made) == HW_OK)
            hw_graph_free(made);
        throw;
    }
    check(hw_queue_end(on, &made));
    return graph(made);
}

/* ---- Tensors ---- */

/* Contiguous tensors over host memory, and over a buffer from byte `offset` on. */
inline hw_tensor host(const void *data, int32_t dtype,
                      std::initializer_list<int64_t> extents)
{
    hw_tensor made{};
    const auto rank = static_cast<int32_t>(extents.size());
    check(hw_tensor_host(&made, data, dtype, rank, extents.begin()));
    return made;
}

inline hw_tensor view(hw_buffer *of, uint64_t offset, int32_t dtype,
                      std::initializer_list<int64_t> extents)
{
    hw_tensor made{};
    const auto rank = static_cast<int32_t>(extents.size());
    check(hw_tensor_view(&made, of, offset, dtype, rank, extents.begin()));
    return made;
}

/* A contiguous tensor and the buffer behind it. */
struct allocation {
    hw_tensor tensor{};
    buffer memory;
};

inline allocation alloc(hw_device *device, int32_t dtype,
                        std::initializer_list<int64_t> extents, uint32_t flags = 0)
{
    allocation made;
    const auto rank = static_cast<int32_t>(extents.size());
    check(hw_tensor_alloc(device, flags, dtype, rank, extents.begin(), &made.tensor));
    made.memory.reset(made.tensor.buffer);
    return made;
}

/* ---- Ops ---- */

/* hw::matmul is struct hw_matmul, and so on for each op; submit() takes any of them. */
#define X(NAME, name)                                                                      \
    using name = struct ::hw_##name;                                                       \
    inline void submit(hw_queue *on, const name &op)                                       \
    {                                                                                      \
        check(hw_submit(on, HW_OP_##NAME, &op, sizeof op));                                \
    }
HW_OPS(X)
#undef X

} // namespace hw

#endif
