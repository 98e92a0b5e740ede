//! What the thread that waits for the trace queue does when the runtime cannot wait.
#![cfg(not(loom))]
#![expect(clippy::unwrap_used, reason = "helpers of the tests")]

use std::sync::Arc;
use std::time::Duration;

use wavescope_att_resources::{AgentOwner, HsaDevice, Limits, Message, Need, Source, TraceClient, TraceId};
use wavescope_core::{
    AgentId, AqlPacket, ContextId, Fence, GfxTarget, LossReason, PacketHeader, PacketType, Token,
};
use wavescope_hsa::Hsa;
use wavescope_software_gpu::face::{Options, SoftwareRuntime};

struct Nobody;

impl TraceClient for Nobody {
    fn ended(&self, _trace: TraceId, _outcome: Result<(), LossReason>) {}
    fn release(&self, _trace: TraceId) {}
}

/// Entries of a runtime that has no way to wait for a signal.
fn hsa_that_cannot_wait(runtime: &SoftwareRuntime) -> Hsa {
    // SAFETY: the container lives as long as the process, and nobody else calls through it in this test.
    let core = unsafe { (*runtime.table()).core_ };
    // SAFETY: likewise; the entry is put back before anybody needs it.
    let wait = unsafe { (*core).hsa_signal_wait_scacquire_fn.take() };
    // SAFETY: the runtime lives to the end of the test.
    let hsa = unsafe { Hsa::from_table(runtime.table(), Some(runtime.topology())) }.unwrap();
    // SAFETY: as above.
    unsafe { (*core).hsa_signal_wait_scacquire_fn = wait };
    hsa
}

#[test]
fn wait_that_fails_is_the_answer_at_once_and_not_a_silent_gpu() {
    let runtime = SoftwareRuntime::start(Options::preset(GfxTarget::GFX942, 1)).unwrap();
    let hsa = hsa_that_cannot_wait(&runtime);
    let (agent, context, handle) = (AgentId(0), ContextId(1), hsa.gpus()[0].handle.handle);
    let limits = Limits { patience: Duration::from_secs(3), traces: 4 };
    let owner = AgentOwner::new(agent, Box::new(HsaDevice::new(hsa.clone(), agent)), limits);
    owner.register(context, handle, Need { buffer_bytes: 1 << 20, buffers: 1 }).unwrap();
    let lease = owner.acquire(context, handle, Arc::new(Nobody)).unwrap();
    lease.claim().unwrap();
    let mut packet = AqlPacket([0; 16]);
    packet.set_header(PacketHeader::new(PacketType::BARRIER_AND, false, Fence::System, Fence::System));
    let trace = TraceId { context, token: Token { index: 0, generation: 0 } };
    let source = Source::Device { start: vec![packet], stop: vec![packet] };
    let begin = |reply| Message::Begin { trace, source, reply: Some(reply) };
    let error = owner.address().unwrap().ask(begin).wait().unwrap().unwrap_err();
    assert!(error.to_string().contains("hsa_signal_wait_scacquire"), "{error}");
    drop(lease);
    owner.shutdown().unwrap();
}
