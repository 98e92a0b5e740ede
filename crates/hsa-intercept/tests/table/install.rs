//! The table: versions and sizes, twice the same, other tools, one runtime after another.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use hsa_sys::{AmdExtTable, CoreApiTable, HSA_STATUS_SUCCESS, HsaApiTable, hsa_queue_t, hsa_status_t};
use wavescope_core::{AgentId, Interception, InterceptionError};
use wavescope_hsa_intercept::{Error, Interceptor, Options, Technique};

use crate::application::*;
use crate::runtime::{Runtime, new_table, object, parts, queues, state};
use crate::service::*;

/// Every slot of both parts.
fn slots(table: *mut HsaApiTable) -> Vec<usize> {
    let (core, amd) = parts(table);
    let words = |part: *const usize, size: usize| (2..size / 8).map(move |index| part.wrapping_add(index));
    let core = words((&raw const *core).cast(), size_of::<CoreApiTable>());
    let amd = words((&raw const *amd).cast(), size_of::<AmdExtTable>());
    // SAFETY: slots behind the version, all within the parts.
    core.chain(amd).map(|slot| unsafe { slot.read() }).collect()
}

fn try_install(table: *mut HsaApiTable, technique: Technique) -> Result<Arc<Interceptor>, Error> {
    // SAFETY: a table of the scripted runtime, which nobody else uses now.
    unsafe { Interceptor::install(table, None, Options { technique: Some(technique), ..Options::default() }) }
}

#[test]
fn a_table_of_an_unknown_version_is_left_untouched() {
    let _runtime = Runtime::start();
    for part in 0..3 {
        let table = new_table();
        let (core, amd) = parts(table);
        match part {
            // SAFETY: a table of the scripted runtime.
            0 => unsafe { &mut *table }.version.major_id = 4,
            1 => core.version.major_id = 3,
            _ => amd.version.major_id = 1,
        }
        let before = slots(table);
        let error = try_install(table, Technique::Doorbell).unwrap_err();
        assert!(matches!(error, Error::Hsa(wavescope_hsa::Error::UnknownVersion { .. })), "{error}");
        assert_eq!(slots(table), before);
    }
}

// A table of an older runtime ends before some entries: those that are needed are missed by name, the others left alone.
#[test]
fn slots_behind_the_tables_end_are_neither_read_nor_written() {
    let runtime = Runtime::start();
    let end = std::mem::offset_of!(CoreApiTable, hsa_signal_silent_store_relaxed_fn);
    let (core, _) = parts(runtime.table);
    core.version.minor_id = end as u32;
    let silent = core.hsa_signal_silent_store_relaxed_fn.map(|entry| entry as usize);
    let interceptor = runtime.install(Technique::Doorbell);
    assert_eq!(runtime.core().hsa_signal_silent_store_relaxed_fn.map(|entry| entry as usize), silent);
    let queue = runtime.queue(64);
    runtime.submit(queue, &[kernel(1, 0)]);
    runtime.run_until(|| ran(queue) == [1]);
    assert_eq!(runtime.destroy(queue), HSA_STATUS_SUCCESS);
    interceptor.shut_down().unwrap();

    let table = new_table();
    parts(table).0.version.minor_id = std::mem::offset_of!(CoreApiTable, hsa_queue_destroy_fn) as u32;
    let before = slots(table);
    let error = try_install(table, Technique::Doorbell).unwrap_err();
    assert!(matches!(error, Error::MissingEntry { .. }), "{error}");
    assert_eq!(slots(table), before);
}

#[test]
fn a_runtime_without_intercept_queues_is_refused_only_for_the_technique_that_needs_them() {
    let runtime = Runtime::start();
    parts(runtime.table).1.hsa_amd_queue_intercept_create_fn = None;
    let before = slots(runtime.table);
    let error = try_install(runtime.table, Technique::Runtime).unwrap_err();
    assert!(error.to_string().contains("hsa_amd_queue_intercept_create"), "{error}");
    assert_eq!(slots(runtime.table), before);
    try_install(runtime.table, Technique::Doorbell).unwrap().shut_down().unwrap();
    assert_eq!(slots(runtime.table), before);
}

#[test]
fn the_same_table_twice_is_wrapped_once() {
    for technique in TECHNIQUES {
        let runtime = Runtime::start();
        let originals = slots(runtime.table);
        let first = runtime.install(technique);
        let wrapped = slots(runtime.table);
        let second = runtime.install(technique);
        assert!(Arc::ptr_eq(&first, &second));
        assert_eq!(slots(runtime.table), wrapped);
        first.shut_down().unwrap();
        assert_eq!(slots(runtime.table), originals, "everything is put back");
    }
}

// Without a service that needs queues their creation is not replaced.
#[test]
fn without_queues_only_executables_are_followed() {
    let runtime = Runtime::start();
    let before = slots(runtime.table);
    let interceptor = runtime.install_with(Options { queues: false, ..Options::default() });
    let changed = slots(runtime.table).iter().zip(&before).filter(|(now, then)| now != then).count();
    assert_eq!((changed, interceptor.technique()), (2, None), "freeze and destroy");
    interceptor.shut_down().unwrap();
}

// ROCr takes no calls any more when it unloads its tools, and counts the signals that are left.
#[test]
fn the_end_of_the_runtime_finds_no_signal_of_ours() {
    for technique in TECHNIQUES {
        let runtime = Runtime::start();
        let interceptor = runtime.install(technique);
        let service = FakeService::new(|_| Plan::Count);
        interceptor.subscribe(service.subscription(&[], true)).unwrap();
        for round in 1..=3 {
            let queue = runtime.queue(64);
            runtime.submit(queue, &[kernel(1, 0), kernel(2, 0), kernel(3, 0)]);
            runtime.run_until(|| service.retired() == 3 * round);
            let in_use = state().live_signals.load(Ordering::Relaxed);
            assert_eq!(runtime.end(), in_use, "packets may name them as long as there is a queue");
            runtime.destroy(queue);
            assert_eq!(runtime.end(), 0, "{technique:?}");
        }
        interceptor.shut_down().unwrap();
        runtime.assert_clean();
    }
}

unsafe extern "C-unwind" fn tools_inactivate(_queue: *mut hsa_queue_t) -> hsa_status_t {
    HSA_STATUS_SUCCESS
}

#[test]
fn a_slot_that_another_tool_took_stays_its_own() {
    let runtime = Runtime::start();
    let originals = slots(runtime.table);
    let interceptor = runtime.install(Technique::Doorbell);
    parts(runtime.table).0.hsa_queue_inactivate_fn = Some(tools_inactivate);
    interceptor.shut_down().unwrap();
    let now = slots(runtime.table);
    let kept: Vec<_> =
        now.iter().zip(&originals).filter(|(now, then)| now != then).map(|(now, _)| *now).collect();
    assert_eq!(kept, [tools_inactivate as *const () as usize]);
}

/// The entry under the other tool's.
static UNDER: std::sync::Mutex<hsa_sys::CoreApiTable> = std::sync::Mutex::new(CoreApiTable::zeroed());

unsafe extern "C-unwind" fn tools_destroy(queue: *mut hsa_queue_t) -> hsa_status_t {
    let under = UNDER.lock().unwrap().hsa_queue_destroy_fn.unwrap();
    // SAFETY: passed on.
    unsafe { under(queue) }
}

// Another tool lies over our entry when we leave and come back: through it we would call ourselves for ever.
#[test]
fn coming_back_under_another_tool_does_not_call_in_circles() {
    let runtime = Runtime::start();
    let first = runtime.install(Technique::Doorbell);
    *UNDER.lock().unwrap() = *runtime.core();
    parts(runtime.table).0.hsa_queue_destroy_fn = Some(tools_destroy);
    first.shut_down().unwrap();
    drop(first);
    let second = runtime.install(Technique::Doorbell);
    let queue = runtime.queue(64);
    let service = FakeService::new(|_| Plan::Count);
    let id = second.subscribe(service.subscription(&[], true)).unwrap();
    runtime.submit(queue, &[kernel(1, 0)]);
    runtime.run_until(|| service.retired() == 1);
    assert_eq!(runtime.destroy(queue), HSA_STATUS_SUCCESS, "once through the other tool, then the runtime");
    second.unsubscribe(id).unwrap();
    second.shut_down().unwrap();
    assert_eq!(state().live_queues.load(Ordering::Relaxed), 0);
    runtime.assert_clean();
}

// The runtime ends and begins again: its table is as new, at the same place or another.
#[test]
fn a_second_runtime_gets_an_interceptor_of_its_own() {
    for technique in TECHNIQUES {
        for same_place in [true, false] {
            let mut runtime = Runtime::start();
            let first = runtime.install(technique);
            let fresh = new_table();
            if same_place {
                let ((core, amd), (new_core, new_amd)) = (parts(runtime.table), parts(fresh));
                (*core, *amd) = (*new_core, *new_amd);
            } else {
                runtime.table = fresh;
            }
            let second = runtime.install(technique);
            assert!(!Arc::ptr_eq(&first, &second));
            let service = FakeService::new(|_| Plan::Count);
            second.subscribe(service.subscription(&[AgentId(0)], true)).unwrap();
            let queue = runtime.queue(64);
            runtime.submit(queue, &[kernel(1, 0), kernel(2, 0)]);
            runtime.run_until(|| service.retired() == 2);
            assert_eq!(runtime.destroy(queue), HSA_STATUS_SUCCESS);
            second.shut_down().unwrap();
            first.shut_down().unwrap();
            runtime.assert_clean();
        }
    }
}

// Interception ends, its owner drops it, and another begins, while a queue of the first lives on: its packets, its errors
// and its end still find what they belong to.
#[test]
fn a_queue_outlives_the_interceptor_that_made_it() {
    static ERRORS: std::sync::Mutex<Vec<usize>> = std::sync::Mutex::new(Vec::new());
    unsafe extern "C-unwind" fn on_error(_: hsa_status_t, queue: *mut hsa_queue_t, _: *mut std::ffi::c_void) {
        ERRORS.lock().unwrap().push(queue.addr());
    }
    for technique in TECHNIQUES {
        let mut runtime = Runtime::start();
        ERRORS.lock().unwrap().clear();
        let first = runtime.install(technique);
        let agent = crate::runtime::gpu(0);
        let old = runtime.try_queue(agent, 64, Some(on_error), std::ptr::null_mut()).unwrap();
        let service = FakeService::new(|_| Plan::Count);
        first.subscribe(service.subscription(&[], true)).unwrap();
        runtime.submit(old, &[kernel(1, 0)]);
        runtime.run_until(|| service.retired() == 1);
        first.shut_down().unwrap();
        assert!(matches!(first.subscribe(service.subscription(&[], true)), Err(InterceptionError::ShutDown)));
        drop(first);
        // A runtime that is initialised again hands over a new table, but the old queue is still there.
        runtime.table = new_table();
        let second = runtime.install(technique);
        let others = FakeService::new(|_| Plan::Count);
        second.subscribe(others.subscription(&[], true)).unwrap();
        let new = runtime.queue(64);
        runtime.submit(old, &[kernel(2, 0)]);
        runtime.submit(new, &[kernel(3, 0)]);
        runtime.run_until(|| others.retired() == 1 && ran(old) == [1, 2]);
        let behind = queues().into_iter().find(|queue| std::ptr::eq(*queue, object(old))).unwrap();
        behind.fail(HSA_STATUS_ERROR_OF_THE_TEST);
        assert_eq!(*ERRORS.lock().unwrap(), [old.addr()], "by the name that the application knows");
        assert_eq!(runtime.destroy(old), HSA_STATUS_SUCCESS);
        assert_eq!(runtime.destroy(new), HSA_STATUS_SUCCESS);
        second.shut_down().unwrap();
        assert_eq!(state().live_queues.load(Ordering::Relaxed), 0);
        runtime.assert_clean();
    }
}

const HSA_STATUS_ERROR_OF_THE_TEST: hsa_status_t = hsa_sys::HSA_STATUS_ERROR_INVALID_PACKET_FORMAT;

// Whoever shut down may install again on the same table.
#[test]
fn interception_can_begin_again_on_the_same_table() {
    for technique in TECHNIQUES {
        let runtime = Runtime::start();
        for round in 1..=3 {
            let interceptor = runtime.install(technique);
            let service = FakeService::new(|_| Plan::Count);
            interceptor.subscribe(service.subscription(&[], true)).unwrap();
            let queue = runtime.queue(64);
            runtime.submit(queue, &[kernel(round, 0)]);
            runtime.run_until(|| service.retired() == 1);
            assert_eq!(runtime.destroy(queue), HSA_STATUS_SUCCESS);
            interceptor.shut_down().unwrap();
        }
        runtime.assert_clean();
    }
}
