//! Programs of a test's own, without a code object.

use wavescope_core::{AqlPacket, Fence, PacketHeader, PacketType};
use wavescope_workload::Batch;

use crate::{Bed, PATIENCE};

/// Bytes from a descriptor to its code.
const CODE: usize = 256;

/// Runs `code` on the first GPU and waits for its end; returns the address of its descriptor, which asks for nothing.
pub fn run_code(bed: &Bed, code: &[u8], grid: u32, workgroup: u16) -> u64 {
    let mut memory = bed.application.buffer(bed.gpu(0), CODE + code.len() + CODE).expect("memory");
    memory.bytes_mut()[16..20].copy_from_slice(&(CODE as u32).to_le_bytes());
    memory.bytes_mut()[CODE..CODE + code.len()].copy_from_slice(code);
    let signal = bed.application.signal(1).expect("a signal");
    let mut packet = AqlPacket([0; 16]);
    packet.0[0] = 1 << 16;
    packet.0[1] = u32::from(workgroup) | 1 << 16;
    packet.0[2] = 1;
    packet.0[3..6].copy_from_slice(&[grid, 1, 1]);
    (packet.0[8], packet.0[9]) = (memory.address() as u32, (memory.address() >> 32) as u32);
    packet.set_completion_signal(signal.handle().handle);
    packet.set_header(PacketHeader::new(PacketType::KERNEL_DISPATCH, true, Fence::System, Fence::System));
    let mut batch = Batch::new();
    batch.packet(packet);
    let queue = bed.application.queue(bed.gpu(0), 64).expect("a queue");
    queue.submit(&batch).and_then(|submission| submission.wait(PATIENCE)).expect("room in the queue");
    assert_eq!(signal.wait_below(1, PATIENCE).expect("the end of the kernel"), 0);
    memory.address()
}
