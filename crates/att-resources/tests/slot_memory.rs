//! Which memory a packet program instance gets.
#![cfg(not(loom))]

mod support;

use std::sync::Arc;

use support::{Event, MIB, Rig};
use wavescope_aql_profile::{AllocationRequest, BufferFlags, Memory, Status};
use wavescope_att_resources::{BufferId, DeviceError, Error, SlotMemory, SlotReader};
use wavescope_core::sync::Mutex;

/// Memory of its own that remembers what was asked of it.
#[derive(Default)]
struct Own(Mutex<Vec<String>>);

impl Memory for Own {
    fn allocate(&self, request: AllocationRequest) -> Result<u64, Status> {
        self.0.lock().push(format!("allocate {}", request.bytes));
        Ok(0x77_0000)
    }
    fn free(&self, address: u64) {
        self.0.lock().push(format!("free {address:#x}"));
    }
    fn copy_in(&self, _address: u64, _bytes: &[u8]) {}
    fn copy_out(&self, address: u64, _into: &mut [u8]) {
        self.0.lock().push(format!("copy_out {address:#x}"));
    }
}

/// Slots whose bytes are all 0x5A.
struct Slots;

impl SlotReader for Slots {
    fn read(&self, _address: u64, into: &mut [u8]) -> Result<(), DeviceError> {
        into.fill(0x5A);
        Ok(())
    }
}

fn data(bytes: u64) -> AllocationRequest {
    AllocationRequest { bytes, flags: BufferFlags::TRACE_DATA }
}

#[test]
fn requests_for_gpu_memory_are_slots_by_their_index_and_the_rest_is_its_own() {
    let rig = Rig::new();
    rig.register(1, MIB, 3).unwrap();
    let lease = Arc::new(rig.acquire(1).unwrap());
    let own = Arc::new(Own::default());
    let memory = || SlotMemory::new(Arc::clone(&lease), own.clone(), Arc::new(Slots));
    let (first, second) = (memory(), memory());
    let addresses = |memory: &SlotMemory| [memory.allocate(data(MIB)), memory.allocate(data(MIB))];
    let slots = addresses(&first);
    assert_ne!(slots[0], slots[1]);
    assert_eq!(slots, addresses(&second), "the same for every instance");
    assert_eq!(slots[1].unwrap(), lease.resolve(BufferId::Output(1), MIB).unwrap());
    let commands = AllocationRequest { bytes: 512, flags: BufferFlags::COMMANDS };
    assert_eq!(first.allocate(commands), Ok(0x77_0000));
    first.free(slots[0].unwrap());
    first.free(0x77_0000);
    assert_eq!(*own.0.lock(), ["allocate 512", "free 0x770000"]);
    assert_eq!(rig.gpu.count(|event| matches!(event, Event::Free(_))), 0);
}

#[test]
fn slots_are_read_through_the_reader_and_only_within_their_size() {
    let rig = Rig::new();
    let lease = Arc::new(rig.lease(1));
    let own = Arc::new(Own::default());
    let memory = SlotMemory::new(lease, own.clone(), Arc::new(Slots));
    let slot = memory.allocate(data(4096)).unwrap();
    let mut bytes = [0; 64];
    memory.read_slot(slot + 4096 - 64, &mut bytes).unwrap();
    assert_eq!(bytes, [0x5A; 64]);
    let beyond = memory.read_slot(slot + 4096 - 63, &mut bytes).unwrap_err();
    assert!(matches!(beyond, DeviceError::NoBuffer { length: 64, .. }), "{beyond}");
    assert!(memory.read_slot(u64::MAX, &mut bytes).is_err());
    memory.copy_out(0x77_0000, &mut bytes);
    assert_eq!(*own.0.lock(), ["copy_out 0x770000"]);
}

#[test]
fn refusal_keeps_its_reason() {
    let rig = Rig::new();
    let lease = Arc::new(rig.lease(1));
    let memory = SlotMemory::new(lease, Arc::new(Own::default()), Arc::new(Slots));
    assert_eq!(memory.allocate(data(2 * MIB)), Err(Status::OUT_OF_RESOURCES));
    assert!(matches!(memory.take_refusal(), Some(Error::BufferTooSmall { .. })));
    assert!(memory.take_refusal().is_none());
}
