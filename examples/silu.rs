// SPDX-License-Identifier: MIT
// silu.rs - the library from Rust, with nothing but std: structs of hw/types.h and hw/ops.h by hand.
use std::ffi::{c_char, c_void, CStr};
use std::ptr::{null, null_mut};

#[repr(C)]
#[derive(Clone, Copy)]
struct Tensor {
    buffer: *mut c_void,
    data: *mut c_void,
    offset: u64,
    dtype: i32,
    rank: i32,
    extent: [i64; 4],
    stride: [i64; 4],
    layout: u32,
    reserved: [u32; 3],
}

#[repr(C)]
struct Silu {
    x: Tensor,
    y: Tensor,
}

const F32: i32 = 1; // enum hw_dtype
const OP_SILU: u32 = 3; // enum hw_op: `hw abi hw_silu` prints it

#[link(name = "hw")]
extern "C" {
    fn hw_open(options: *const c_void, context: *mut *mut c_void) -> i32;
    fn hw_close(context: *mut c_void);
    fn hw_device_default(context: *mut c_void) -> *mut c_void;
    fn hw_queue_open(device: *mut c_void, options: *const c_void, queue: *mut *mut c_void) -> i32;
    fn hw_queue_wait(queue: *mut c_void) -> i32;
    fn hw_submit(queue: *mut c_void, op: u32, args: *const c_void, size: usize) -> i32;
    fn hw_tensor_host(
        tensor: *mut Tensor, data: *const c_void, dtype: i32, rank: i32, extents: *const i64,
    ) -> i32;
    fn hw_message() -> *const c_char;
}

fn check(status: i32) -> Result<(), String> {
    if status == 0 {
        return Ok(());
    }
    Err(unsafe { CStr::from_ptr(hw_message()) }.to_string_lossy().into_owned())
}

/// The array must outlive the queue's next wait: a tensor owns nothing.
unsafe fn host(data: *const f32, count: i64) -> Result<Tensor, String> {
    let mut tensor: Tensor = std::mem::zeroed();
    check(hw_tensor_host(&mut tensor, data.cast(), F32, 1, &count))?;
    Ok(tensor)
}

fn silu(x: &[f32], y: &mut [f32]) -> Result<(), String> {
    assert_eq!(x.len(), y.len());
    unsafe {
        let (mut context, mut queue) = (null_mut(), null_mut());
        check(hw_open(null(), &mut context))?;
        let result = (|| {
            check(hw_queue_open(hw_device_default(context), null(), &mut queue))?;
            let op = Silu { x: host(x.as_ptr(), x.len() as i64)?, y: host(y.as_mut_ptr(), y.len() as i64)? };
            check(hw_submit(queue, OP_SILU, (&op as *const Silu).cast(), std::mem::size_of::<Silu>()))?;
            check(hw_queue_wait(queue))
        })();
        hw_close(context);
        result
    }
}

fn main() -> Result<(), String> {
    assert_eq!(std::mem::size_of::<Tensor>(), 112);
    let mut y = [0f32; 3];
    silu(&[-1.0, 0.0, 1.0], &mut y)?;
    println!("{:.3} {:.3} {:.3}", y[0], y[1], y[2]);
    Ok(())
}
