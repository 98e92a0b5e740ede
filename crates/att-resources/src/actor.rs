//! The thread around the state machine: feeds it, performs its effects.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::time::Instant;

use wavescope_core::actor::{Actor, Address};

use crate::owner::{DeviceEvent, Effect, Message, Owner, SubmissionId};
use crate::{Completion, Device, DeviceError};

/// An [`Owner`] with the device on which its effects are performed.
///
/// Without an address, before it has a thread, it serves everything that needs no GPU: registration, leases,
/// buffers.
pub struct OwnerActor {
    owner: Owner,
    device: Box<dyn Device>,
    /// Where completions are reported.
    address: Option<Address<Message>>,
    deadline: Option<Instant>,
}

impl OwnerActor {
    /// Puts both together.
    pub fn new(owner: Owner, device: Box<dyn Device>) -> Self {
        Self { owner, device, address: None, deadline: None }
    }

    /// Tells it its own address: completions can be reported from now on.
    #[must_use]
    pub fn with_address(mut self, address: &Address<Message>) -> Self {
        self.address = Some(address.clone());
        self
    }

    /// What an effect on the device led to, to be handled before any other message.
    fn perform(&mut self, effect: Effect) -> ControlFlow<(), Option<DeviceEvent>> {
        match effect {
            Effect::CreateQueue { packets } => {
                let event = DeviceEvent::QueueCreated(self.device.create_queue(packets));
                return ControlFlow::Continue(Some(event));
            }
            Effect::Allocate { buffer, bytes } => {
                let event = DeviceEvent::Allocated { buffer, result: self.device.allocate(buffer, bytes) };
                return ControlFlow::Continue(Some(event));
            }
            Effect::Submit { submission, packets } => {
                let refused = self.submit(submission, &packets).err();
                let event = refused.map(|error| DeviceEvent::SubmissionRefused { submission, error });
                return ControlFlow::Continue(event);
            }
            Effect::Exit => return ControlFlow::Break(()),
            Effect::Ended { client, trace, outcome } => client.ended(trace, outcome),
            Effect::Release { client, trace } => client.release(trace),
            Effect::Answer(answer) => answer.send(),
            Effect::DestroyQueue => self.device.destroy_queue(),
            Effect::Free { buffer, address } => self.device.free(buffer, address),
            Effect::Leak { buffer, address } => {
                tracing::error!(agent = %self.owner.agent(), %buffer, "the GPU may still write it: leaked on purpose");
                self.device.leak(buffer, address);
            }
            Effect::ArmTimer => self.deadline = Some(Instant::now() + self.owner.patience()),
            Effect::DisarmTimer => self.deadline = None,
            Effect::Report(violation) => tracing::error!(agent = %self.owner.agent(), "{violation}"),
        }
        ControlFlow::Continue(None)
    }

    fn submit(
        &mut self,
        submission: SubmissionId,
        packets: &[wavescope_core::AqlPacket],
    ) -> Result<(), DeviceError> {
        let address = self.address.clone().ok_or(DeviceError::Unwatched)?;
        self.device.submit(packets, Completion::new(address, submission))
    }
}

impl Actor for OwnerActor {
    type Message = Message;
    const NAME: &'static str = "wavescope-trace";

    fn handle(&mut self, message: Message) -> ControlFlow<()> {
        let mut messages = VecDeque::from([message]);
        while let Some(message) = messages.pop_front() {
            for effect in self.owner.step(message) {
                messages.extend(self.perform(effect)?.map(Message::Device));
            }
        }
        ControlFlow::Continue(())
    }

    fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    fn overdue(&mut self) -> ControlFlow<()> {
        self.deadline = None;
        self.handle(Message::Device(DeviceEvent::Expired))
    }
}

impl Drop for OwnerActor {
    fn drop(&mut self) {
        let is_trustworthy = !std::thread::panicking();
        for effect in self.owner.abandon(is_trustworthy) {
            // Releasing leads to nothing more.
            let _ = self.perform(effect);
        }
    }
}
