//! Signals: arithmetic, waits, handlers, more of them than there are events.

use std::ffi::c_void;
use std::sync::mpsc;
use std::time::Duration;

use hsa_sys::*;

use crate::rig::{Rig, SOON, hsa};

type Arithmetic = fn(i64, i64) -> i64;
type Update = unsafe extern "C-unwind" fn(hsa_signal_t, i64);

#[test]
fn every_update_in_every_order_computes_what_its_name_says() {
    let rig = Rig::new();
    // SAFETY: the runtime's table lives for ever.
    let core = unsafe { (*rig.table()).core_ };
    // SAFETY: so do its parts.
    let core = unsafe { *core };
    let updates: [(&str, [Option<Update>; 4], Arithmetic); 5] = [
        (
            "add",
            [
                core.hsa_signal_add_relaxed_fn,
                core.hsa_signal_add_scacquire_fn,
                core.hsa_signal_add_screlease_fn,
                core.hsa_signal_add_scacq_screl_fn,
            ],
            i64::wrapping_add,
        ),
        (
            "subtract",
            [
                core.hsa_signal_subtract_relaxed_fn,
                core.hsa_signal_subtract_scacquire_fn,
                core.hsa_signal_subtract_screlease_fn,
                core.hsa_signal_subtract_scacq_screl_fn,
            ],
            i64::wrapping_sub,
        ),
        (
            "and",
            [
                core.hsa_signal_and_relaxed_fn,
                core.hsa_signal_and_scacquire_fn,
                core.hsa_signal_and_screlease_fn,
                core.hsa_signal_and_scacq_screl_fn,
            ],
            |a, b| a & b,
        ),
        (
            "or",
            [
                core.hsa_signal_or_relaxed_fn,
                core.hsa_signal_or_scacquire_fn,
                core.hsa_signal_or_screlease_fn,
                core.hsa_signal_or_scacq_screl_fn,
            ],
            |a, b| a | b,
        ),
        (
            "xor",
            [
                core.hsa_signal_xor_relaxed_fn,
                core.hsa_signal_xor_scacquire_fn,
                core.hsa_signal_xor_screlease_fn,
                core.hsa_signal_xor_scacq_screl_fn,
            ],
            |a, b| a ^ b,
        ),
    ];
    let signal = rig.application.signal(0).unwrap();
    for (name, functions, expected) in updates {
        for function in functions {
            signal.store(0x0F0F_1234).unwrap();
            // SAFETY: a live signal.
            unsafe { function.unwrap()(signal.handle(), -0x00F0_0001) };
            assert_eq!(signal.load().unwrap(), expected(0x0F0F_1234, -0x00F0_0001), "{name}");
        }
    }
}

#[test]
fn exchange_and_compare_exchange_return_what_was_there() {
    let rig = Rig::new();
    let signal = rig.application.signal(5).unwrap();
    let handle = signal.handle();
    assert_eq!(hsa!(rig.table(), core_.hsa_signal_exchange_scacq_screl_fn(handle, 7)), 5);
    assert_eq!(hsa!(rig.table(), core_.hsa_signal_cas_scacq_screl_fn(handle, 6, 9)), 7);
    assert_eq!(signal.load().unwrap(), 7, "compared and not swapped");
    assert_eq!(hsa!(rig.table(), core_.hsa_signal_cas_relaxed_fn(handle, 7, 9)), 7);
    assert_eq!(signal.load().unwrap(), 9);
}

#[test]
fn wait_any_names_the_signal_and_wait_all_needs_every_one() {
    let rig = Rig::new();
    let signals: Vec<_> = (0..3).map(|_| rig.application.signal(1).unwrap()).collect();
    let mut handles: Vec<_> = signals.iter().map(|signal| signal.handle()).collect();
    handles.insert(1, hsa_signal_t { handle: 0 });
    let mut conditions = [HSA_SIGNAL_CONDITION_EQ; 4];
    let mut values = [0_i64; 4];
    let mut satisfying = [-1_i64; 4];
    let mut any = |timeout: u64| {
        let (h, c, v) = (handles.as_mut_ptr(), conditions.as_mut_ptr(), values.as_mut_ptr());
        let (hint, out) = (HSA_WAIT_STATE_BLOCKED, satisfying.as_mut_ptr());
        hsa!(rig.table(), amd_ext_.hsa_amd_signal_wait_any_fn(4, h, c, v, timeout, hint, out))
    };
    assert_eq!(any(1_000_000), u32::MAX);
    std::thread::scope(|scope| {
        scope.spawn(|| signals[1].store(0).unwrap());
        assert_eq!(any(u64::MAX), 2, "index among the handles, the null one included");
    });
    handles.remove(1);
    let mut all = |timeout: u64| {
        let (h, c, v) = (handles.as_mut_ptr(), conditions.as_mut_ptr(), values.as_mut_ptr());
        let (hint, out) = (HSA_WAIT_STATE_BLOCKED, std::ptr::null_mut());
        hsa!(rig.table(), amd_ext_.hsa_amd_signal_wait_all_fn(3, h, c, v, timeout, hint, out))
    };
    assert_eq!(all(1_000_000), u32::MAX);
    std::thread::scope(|scope| {
        scope.spawn(|| [&signals[0], &signals[2]].iter().for_each(|signal| signal.store(0).unwrap()));
        assert_eq!(all(u64::MAX), 0);
    });
}

#[test]
fn group_wait_gives_the_signal_and_its_value() {
    let rig = Rig::new();
    let signals: Vec<_> = (0..3).map(|_| rig.application.signal(4).unwrap()).collect();
    let handles: Vec<_> = signals.iter().map(|signal| signal.handle()).collect();
    let mut group = hsa_signal_group_t::zeroed();
    let none = std::ptr::null();
    hsa!(rig.table(), core_.hsa_signal_group_create_fn(3, handles.as_ptr(), 0, none, &raw mut group));
    let (conditions, values) = ([HSA_SIGNAL_CONDITION_LT; 3], [4_i64; 3]);
    let (mut signal, mut value) = (hsa_signal_t::zeroed(), 0_i64);
    std::thread::scope(|scope| {
        scope.spawn(|| signals[2].store(3).unwrap());
        let (c, v, state) = (conditions.as_ptr(), values.as_ptr(), HSA_WAIT_STATE_BLOCKED);
        let (s, out) = (&raw mut signal, &raw mut value);
        let status =
            hsa!(rig.table(), core_.hsa_signal_group_wait_any_scacquire_fn(group, c, v, state, s, out));
        assert_eq!(status, HSA_STATUS_SUCCESS);
    });
    assert_eq!((signal, value), (handles[2], 3));
    assert_eq!(hsa!(rig.table(), core_.hsa_signal_group_destroy_fn(group)), HSA_STATUS_SUCCESS);
    assert_eq!(
        hsa!(rig.table(), core_.hsa_signal_group_destroy_fn(group)),
        HSA_STATUS_ERROR_INVALID_SIGNAL_GROUP
    );
}

#[test]
fn handler_gets_each_value_until_it_says_no() {
    unsafe extern "C-unwind" fn handler(value: i64, sender: *mut c_void) -> bool {
        // SAFETY: the sender below, which outlives the handler.
        let sender = unsafe { &*sender.cast::<mpsc::Sender<i64>>() };
        sender.send(value).unwrap();
        value > 1
    }
    let rig = Rig::new();
    let signal = rig.application.signal(9).unwrap();
    let (sender, values) = mpsc::channel::<i64>();
    let data = (&raw const sender).cast_mut().cast();
    let condition = HSA_SIGNAL_CONDITION_LT;
    hsa!(
        rig.table(),
        amd_ext_.hsa_amd_signal_async_handler_fn(signal.handle(), condition, 9, Some(handler), data)
    );
    signal.store(5).unwrap();
    assert_eq!(values.recv_timeout(SOON), Ok(5));
    signal.store(1).unwrap();
    // Until the handler saw 1 it may see 5 again: the condition still holds, as in ROCr.
    while values.recv_timeout(SOON).unwrap() != 1 {}
    signal.store(0).unwrap();
    assert!(values.recv_timeout(Duration::from_millis(5)).is_err(), "called after it returned false");
}

#[test]
fn signals_beyond_the_event_limit_still_wake_their_waiters() {
    let rig = Rig::new();
    let many: Vec<_> = (0..4200).map(|_| rig.application.signal(1).unwrap()).collect();
    let last = &many[4199];
    let abi = std::ptr::with_exposed_provenance::<amd_signal_t>(last.handle().handle as usize);
    // SAFETY: a signal's handle points at its ABI block.
    assert_eq!(unsafe { (*abi).event_id }, 0, "there are 4096 events");
    std::thread::scope(|scope| {
        scope.spawn(|| last.store(0).unwrap());
        last.wait_below(1, SOON).unwrap();
    });
}

#[test]
fn destroyed_signal_is_an_error_not_a_crash() {
    let rig = Rig::new();
    let handle = rig.application.signal(1).unwrap().handle();
    assert_eq!(hsa!(rig.table(), core_.hsa_signal_destroy_fn(handle)), HSA_STATUS_ERROR_INVALID_SIGNAL);
    let null = hsa_signal_t { handle: 0 };
    assert_eq!(hsa!(rig.table(), core_.hsa_signal_destroy_fn(null)), HSA_STATUS_ERROR_INVALID_ARGUMENT);
}
