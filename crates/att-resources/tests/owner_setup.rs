//! Needs, leases, shared buffers. One test per rule, named after its fact.
#![cfg(not(loom))]

mod support;

use std::sync::Arc;

use support::{AGENT, Event, HANDLE, MIB, MISALIGNMENT, Rig};
use wavescope_att_resources::{BufferId, Error, Message, Need};
use wavescope_core::ContextId;

const SLOT0: BufferId = BufferId::Output(0);

#[test]
fn nothing_is_allocated_before_the_first_lease() {
    let rig = Rig::new();
    rig.register(1, MIB, 1).unwrap();
    rig.register(2, 2 * MIB, 1).unwrap();
    assert_eq!(rig.gpu.log(), []);
    drop(rig.owner);
    assert_eq!(rig.gpu.log(), []);
}

#[test]
fn slots_have_the_largest_size_of_all_contexts() {
    let rig = Rig::new();
    rig.register(1, 2 * MIB, 3).unwrap();
    rig.register(2, MIB, 4).unwrap();
    let lease = rig.acquire(2).unwrap();
    assert_eq!(lease.shared().staging, [2 * MIB, 2 * MIB, 2 * MIB, MIB]);
    assert_eq!(lease.own(), Need { buffer_bytes: MIB, buffers: 4 });
    lease.resolve(BufferId::Output(3), MIB).unwrap();
    lease.resolve(BufferId::Staging(0), MIB).unwrap();
    let allocated: Vec<_> =
        rig.gpu.log().into_iter().filter(|event| matches!(event, Event::Allocate { .. })).collect();
    let spare = 0x2000;
    assert_eq!(
        allocated,
        [
            Event::Allocate { buffer: BufferId::Output(3), bytes: MIB + spare },
            Event::Allocate { buffer: BufferId::Staging(0), bytes: 2 * MIB + spare },
        ]
    );
}

#[test]
fn growth_after_the_first_lease_is_refused_and_changes_nothing() {
    let rig = Rig::new();
    let lease = rig.lease(1);
    for (bytes, buffers) in [(MIB + 1, 1), (MIB, 2)] {
        let error = rig.register(2, bytes, buffers).unwrap_err();
        assert!(matches!(error, Error::GrowthRefused { context: ContextId(2), .. }), "{error}");
    }
    assert!(matches!(rig.acquire(2), Err(Error::NotRegistered { .. })));
    rig.register(2, MIB, 1).unwrap();
    rig.register(3, MIB / 2, 0).unwrap();
    assert_eq!(rig.acquire(3).unwrap().shared(), lease.shared());
}

#[test]
fn lease_for_a_context_that_did_not_register_is_refused() {
    let rig = Rig::new();
    let error = rig.acquire(1).err().unwrap();
    assert_eq!(error.to_string(), "context 1 did not register for agent 0");
    assert_eq!(rig.gpu.log(), []);
}

#[test]
fn agent_handle_may_not_change() {
    let rig = Rig::new();
    rig.register(1, MIB, 1).unwrap();
    let need = Need { buffer_bytes: MIB, buffers: 1 };
    let error = rig.owner.register(ContextId(2), 0xBAD, need).unwrap_err();
    assert!(matches!(error, Error::HandleChanged { registered: HANDLE, given: 0xBAD, .. }), "{error}");
}

#[test]
fn slot_has_one_address_for_every_context_and_one_allocation() {
    let rig = Rig::new();
    rig.register(1, MIB, 1).unwrap();
    rig.register(2, 4 * MIB, 1).unwrap();
    let (first, second) = (rig.acquire(1).unwrap(), rig.acquire(2).unwrap());
    let address = first.resolve(SLOT0, MIB).unwrap();
    assert_eq!(second.resolve(SLOT0, 4 * MIB).unwrap(), address);
    assert_eq!(rig.gpu.output_allocations(), [4 * MIB + 0x2000]);
}

#[test]
fn buffer_is_aligned_and_keeps_a_page_free_behind_it() {
    let rig = Rig::new();
    let address = rig.lease(1).resolve(SLOT0, MIB).unwrap();
    let raw = rig.gpu.raw_address(SLOT0);
    assert_eq!(raw % 4096, MISALIGNMENT);
    assert_eq!(address % 4096, 0);
    let end_of_allocation = raw + rig.gpu.output_allocations()[0];
    assert!(address >= raw && address + MIB + 0x1000 <= end_of_allocation);
}

#[test]
fn failed_allocation_is_not_remembered() {
    let rig = Rig::new();
    let lease = rig.lease(1);
    rig.gpu.refuse_allocations(1);
    let error = lease.resolve(SLOT0, MIB).unwrap_err();
    assert_eq!(error.to_string(), "agent 0: allocate returned 0x1008");
    assert!(lease.resolve(SLOT0, MIB).is_ok());
    assert_eq!(rig.gpu.output_allocations().len(), 2);
}

#[test]
fn request_beyond_the_slot_is_refused_and_gets_no_buffer_of_its_own() {
    let rig = Rig::new();
    let lease = rig.lease(1);
    let large = lease.resolve(SLOT0, MIB + 1).unwrap_err();
    assert!(matches!(large, Error::BufferTooSmall { wanted: 1_048_577, size: MIB, .. }), "{large}");
    let beyond = lease.resolve(BufferId::Output(1), 1).unwrap_err();
    assert_eq!(beyond.to_string(), "agent 0 has no output slot 1");
    assert!(matches!(lease.resolve(BufferId::Staging(0), 1), Err(Error::NoSuchBuffer { .. })));
    assert_eq!(rig.gpu.output_allocations(), []);
}

#[test]
fn queue_is_one_for_any_number_of_contexts() {
    let rig = Rig::new();
    (0..400).for_each(|context| rig.register(context, MIB, 1).unwrap());
    let leases: Vec<_> = (0..400).map(|context| rig.acquire(context).unwrap()).collect();
    let addresses: Vec<_> = leases.iter().map(|lease| lease.resolve(SLOT0, MIB).unwrap()).collect();
    assert!(addresses.iter().all(|address| *address == addresses[0]));
    assert_eq!(rig.gpu.count(|event| *event == Event::CreateQueue(512)), 1);
    assert_eq!(rig.gpu.output_allocations().len(), 1);
}

#[test]
fn refused_queue_is_an_error_and_the_next_lease_tries_again() {
    let rig = Rig::new();
    rig.register(1, MIB, 1).unwrap();
    rig.gpu.refuse_queue(true);
    assert!(matches!(rig.acquire(1), Err(Error::Device { agent: AGENT, .. })));
    rig.gpu.refuse_queue(false);
    assert!(rig.acquire(1).is_ok());
}

#[test]
fn all_leases_are_on_the_same_owner_and_keep_it() {
    let rig = Rig::new();
    let (first, second) = (rig.lease(1), rig.lease(2));
    assert!(Arc::ptr_eq(first.owner(), second.owner()));
    first.resolve(SLOT0, MIB).unwrap();
    let gpu = rig.gpu.clone();
    drop(rig);
    drop(first);
    assert_eq!(gpu.count(|event| matches!(event, Event::Free(_) | Event::DestroyQueue)), 0);
    drop(second);
    let end: Vec<_> = gpu.log().split_off(2);
    assert_eq!(end, [Event::DestroyQueue, Event::Free(SLOT0)]);
}

#[test]
fn buffer_without_a_lease_is_refused() {
    let rig = Rig::new();
    let context = ContextId(1);
    drop(rig.lease(1));
    let resolve = rig.address().ask(|reply| Message::Resolve { context, buffer: SLOT0, bytes: 1, reply });
    assert!(matches!(resolve.wait(), Ok(Err(Error::NotLeased { .. }))));
}
