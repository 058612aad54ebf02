/* SPDX-License-Identifier: MIT */
/* layer.cpp - the C++ header: y = silu(x W^T) on the device, recorded once as a graph. */
#include <hw/hw.hpp>
#include <hw/report.h>

#include <cstdio>

namespace {

constexpr int64_t rows = 2, cols = 3, out = 2;
const float x[rows * cols] = { 1, 2, 3, -1, 0, 1 };
const float weight[out * cols] = { 1, 0, 0, 0, 0.5f, 0.5f };
float y[rows * out];

void run(hw_context *context)
{
    hw_device *device = hw_device_default(context);
    hw::queue queue = hw::open_queue(device);
    hw::allocation w = hw::alloc(device, HW_F32, { out, cols }, HW_BUFFER_READ_ONLY);
    hw::allocation product = hw::alloc(device, HW_F32, { rows, out });

    hw::check(hw_tensor_write(queue.get(), &w.tensor, weight, sizeof weight));
    hw::graph layer = hw::record_graph(queue.get(), [&] {
        hw::matmul matmul{};
        matmul.a = hw::host(x, HW_F32, { rows, cols });
        matmul.b = w.tensor;
        matmul.c = product.tensor;
        matmul.transpose_b = 1;
        hw::submit(queue.get(), matmul);

        hw::silu silu{};
        silu.x = product.tensor;
        silu.y = hw::host(y, HW_F32, { rows, out });
        hw::submit(queue.get(), silu);
    });
    hw::check(hw_graph_launch(layer.get(), queue.get()));
    hw::check(hw_queue_wait(queue.get()));
}

} // namespace

int main()
{
    try {
        hw::context context = hw::open();
        run(context.get());
        std::printf("%.3f %.3f %.3f %.3f\n", y[0], y[1], y[2], y[3]);
    } catch (const hw::error &error) {
        std::fprintf(stderr, "%s: %s\n", hw_status_name(error.status()), error.what());
        return 1;
    }
}
