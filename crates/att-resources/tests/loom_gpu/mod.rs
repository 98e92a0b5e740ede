//! The owner's thread of the models, with a GPU and a worker that talk to it.
#![expect(clippy::unwrap_used, reason = "helpers of the models")]

mod gpu;

use std::sync::Arc;
use std::time::Duration;

pub(crate) use gpu::run_gpu;
use wavescope_att_resources::{
    BufferId, Error, Message, Need, Owner, OwnerActor, Source, TraceClient, TraceId,
};
use wavescope_core::actor::{Actor, ActorThread, Address, Reply, reply, spawn_with};
use wavescope_core::sync::thread::{self, JoinHandle};
use wavescope_core::sync::{MailReceiver, MailSender, Places, mailbox};
use wavescope_core::{AgentId, ContextId, LossReason, QueueId, Token};

use gpu::{FakeDevice, SharedGpu};

const QUEUE: QueueId = QueueId(7);

/// Copies what it is told to.
pub(crate) fn run_worker(world: &mut World, copies: usize) -> JoinHandle<()> {
    let (gpu, address, mut jobs) = world.parts(|world| world.jobs.take());
    thread::spawn(move || {
        for _ in 0..copies {
            let Ok(trace) = jobs.recv() else { return };
            let mut slot = gpu.lock();
            assert_eq!(
                slot.holds,
                Some(trace),
                "the slot did not hold the data of the trace that was copied"
            );
            slot.copied += 1;
            drop(slot);
            let _ = address.notify(Message::SlotCopied { trace });
        }
    })
}

/// Hands what ended to the worker and what was released to the GPU.
struct FakeClient {
    jobs: MailSender<TraceId>,
    grants: MailSender<()>,
}

impl TraceClient for FakeClient {
    fn ended(&self, trace: TraceId, outcome: Result<(), LossReason>) {
        assert_eq!(outcome, Ok(()));
        let _ = self.jobs.notify(trace);
    }
    fn release(&self, _trace: TraceId) {
        let _ = self.grants.notify(()); // after its last dispatch the GPU does not listen
    }
}

/// The owner's thread, and what the other threads are made of.
pub(crate) struct World {
    pub(crate) gpu: SharedGpu,
    pub(crate) owner: ActorThread<Message>,
    jobs: Option<MailReceiver<TraceId>>,
    grants: Option<MailReceiver<()>>,
}

impl World {
    /// An owner on which `contexts` hold leases; the first has a dispatch slot if it `claims`.
    pub(crate) fn new(contexts: u64, claims: bool) -> Self {
        let gpu = SharedGpu::default();
        let places = Places { requests: 1, notices: 4 };
        let ((job_sender, jobs), (grant_sender, grants)) = (mailbox(places), mailbox(places));
        let client = Arc::new(FakeClient { jobs: job_sender, grants: grant_sender });
        let owner = Owner::new(AgentId(0), Duration::from_secs(1));
        let mut actor = OwnerActor::new(owner, Box::new(FakeDevice(Arc::clone(&gpu))));
        for context in (1..=contexts).map(ContextId) {
            let need = Need { buffer_bytes: 1, buffers: 1 };
            tell(&mut actor, |reply| Message::Register { context, agent_handle: 0, need, reply });
            let client = client.clone();
            tell(&mut actor, |reply| Message::Acquire { context, agent_handle: 0, client, reply });
            let buffer = BufferId::Output(0);
            tell(&mut actor, |reply| Message::Resolve { context, buffer, bytes: 1, reply });
        }
        if claims {
            tell(&mut actor, |reply| Message::Claim { context: ContextId(1), reply });
        }
        let places = Places { requests: 4, notices: 8 };
        let owner = spawn_with(places, |address| actor.with_address(address)).unwrap();
        Self { gpu, owner, jobs: Some(jobs), grants: Some(grants) }
    }

    fn parts<T>(&mut self, take: impl FnOnce(&mut Self) -> Option<T>) -> (SharedGpu, Address<Message>, T) {
        (Arc::clone(&self.gpu), self.owner.address().clone(), take(self).unwrap())
    }

    /// Begins a dispatch of context 1 as the enqueue path does.
    pub(crate) fn dispatch(&self, number: u32) {
        let (trace, source) = (trace(1, number), Source::Dispatch { queue: QUEUE });
        self.owner.address().notify(Message::Begin { trace, source, reply: None }).ok().unwrap();
        self.owner.address().notify(Message::StopSubmitted { trace }).ok().unwrap();
    }
}

/// Handles a request before the owner has a thread.
fn tell<T: std::fmt::Debug>(
    actor: &mut OwnerActor,
    message: impl FnOnce(Reply<Result<T, Error>>) -> Message,
) {
    let (reply, mut pending) = reply("model");
    let _ = actor.handle(message(reply));
    pending.try_take().unwrap().unwrap().unwrap();
}

fn trace(context: u64, index: u32) -> TraceId {
    TraceId { context: ContextId(context), token: Token { index, generation: 0 } }
}
