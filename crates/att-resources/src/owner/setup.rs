//! Before a trace: needs, leases, buffers, the claim.

use std::sync::Arc;

use wavescope_core::ContextId;
use wavescope_core::actor::Reply;

use super::{Acquiring, Answer, Context, Effect, Owner, QUEUE_PACKETS, Queue, TraceClient, Violation};
use crate::fault::{self, Fault};
use crate::{BufferId, DeviceError, Error, LeaseTerms, Need};

impl Owner {
    pub(super) fn register(&mut self, context: ContextId, handle: u64, need: Need) -> Result<(), Error> {
        self.check_open()?;
        self.check_handle(handle)?;
        if self.is_final && !self.slots.sizes.covers(need) {
            return Err(Error::GrowthRefused { context, agent: self.agent, need });
        }
        self.agent_handle = Some(handle);
        self.slots.sizes.raise(need);
        self.contexts.entry(context).or_insert_with(|| Context::new(need)).need = need;
        Ok(())
    }

    pub(super) fn acquire(
        &mut self,
        context: ContextId,
        handle: u64,
        client: Arc<dyn TraceClient>,
        reply: Reply<Result<LeaseTerms, Error>>,
        effects: &mut Vec<Effect>,
    ) {
        if let Err(error) = self.check_acquire(context, handle) {
            effects.push(Effect::Answer(Answer::Terms(reply, Err(error))));
            return;
        }
        self.is_final = true;
        self.acquiring.push(Acquiring { context, client, reply });
        match self.queue {
            Queue::Absent => {
                self.queue = Queue::Creating;
                effects.push(Effect::CreateQueue { packets: QUEUE_PACKETS });
            }
            Queue::Creating => {}
            Queue::Present => self.grant(effects),
        }
    }

    pub(super) fn queue_created(&mut self, result: Result<(), DeviceError>, effects: &mut Vec<Effect>) {
        match result {
            Ok(()) => {
                self.queue = Queue::Present;
                self.grant(effects);
            }
            Err(source) => {
                self.queue = Queue::Absent;
                let mut source = Some(source);
                for Acquiring { context, reply, .. } in std::mem::take(&mut self.acquiring) {
                    let agent = self.agent;
                    let error = match source.take() {
                        Some(source) => Error::Device { agent, source },
                        None => Error::NotLeased { context, agent },
                    };
                    effects.push(Effect::Answer(Answer::Terms(reply, Err(error))));
                }
            }
        }
    }

    /// Gives a lease to everyone who waits for one.
    fn grant(&mut self, effects: &mut Vec<Effect>) {
        for Acquiring { context, client, reply } in std::mem::take(&mut self.acquiring) {
            let Some(entry) = self.contexts.get_mut(&context) else { continue };
            entry.leases += 1;
            entry.client = Some(client);
            let terms = LeaseTerms { own: entry.need, shared: self.slots.sizes.clone() };
            effects.push(Effect::Answer(Answer::Terms(reply, Ok(terms))));
        }
    }

    pub(super) fn resolve(
        &mut self,
        context: ContextId,
        buffer: BufferId,
        bytes: u64,
        reply: Reply<Result<u64, Error>>,
        effects: &mut Vec<Effect>,
    ) {
        match self.check_resolve(context, buffer, bytes) {
            Err(error) => effects.push(Effect::Answer(Answer::Address(reply, Err(error)))),
            Ok(allocation) => match self.slots.address(buffer) {
                Some(address) => effects.push(Effect::Answer(Answer::Address(reply, Ok(address)))),
                None => {
                    self.resolving = Some((buffer, reply));
                    effects.push(Effect::Allocate { buffer, bytes: allocation });
                }
            },
        }
    }

    /// A failure is not remembered: the next request tries again.
    pub(super) fn allocated(
        &mut self,
        buffer: BufferId,
        result: Result<u64, DeviceError>,
        effects: &mut Vec<Effect>,
    ) {
        let result = match result {
            Ok(raw) => {
                self.slots.insert(buffer, raw);
                self.slots.address(buffer).ok_or(Error::NoSuchBuffer { agent: self.agent, buffer })
            }
            Err(source) => Err(Error::Device { agent: self.agent, source }),
        };
        if let Some((_, reply)) = self.resolving.take_if(|(wanted, _)| *wanted == buffer) {
            effects.push(Effect::Answer(Answer::Address(reply, result)));
        }
    }

    pub(super) fn claim(&mut self, context: ContextId) -> Result<(), Error> {
        self.check_open()?;
        self.check_lease(context)?;
        if self.is_silent() {
            return Err(self.silence());
        }
        match self.claim {
            Some(holder) if holder != context && !fault::is(Fault::AdmitSecondContext) => {
                Err(Error::Busy { agent: self.agent, holder, contender: context })
            }
            _ => {
                self.claim = Some(context);
                Ok(())
            }
        }
    }

    pub(super) fn lease_dropped(&mut self, context: ContextId, effects: &mut Vec<Effect>) {
        let in_flight = self.traces_of(context);
        let Some(entry) = self.contexts.get_mut(&context) else {
            effects.push(Effect::Report(Violation::LeaseUnderflow(context)));
            return;
        };
        if entry.leases == entry.returned_early {
            effects.push(Effect::Report(Violation::LeaseUnderflow(context)));
        } else if in_flight > 0 {
            entry.returned_early += 1;
            effects.push(Effect::Report(Violation::LeaseInUse { context, in_flight }));
        } else {
            self.give_back(context, 1);
        }
    }

    /// After the last trace of a context: leases that were dropped meanwhile go now.
    pub(super) fn give_back_early_leases(&mut self, context: ContextId) {
        let early = self.contexts.get(&context).map_or(0, |entry| entry.returned_early);
        if early == 0 || self.traces_of(context) > 0 {
            return;
        }
        if let Some(entry) = self.contexts.get_mut(&context) {
            entry.returned_early = 0;
        }
        self.give_back(context, early);
    }

    /// Without a lease nobody is told anything any more, and nobody is left to unhook.
    fn give_back(&mut self, context: ContextId, leases: u32) {
        let Some(entry) = self.contexts.get_mut(&context) else { return };
        entry.leases = entry.leases.saturating_sub(leases);
        if entry.leases == 0 {
            entry.client = None;
            entry.queues.clear();
            self.claim.take_if(|holder| *holder == context);
        }
    }

    pub(super) fn check_open(&self) -> Result<(), Error> {
        if self.is_open() { Ok(()) } else { Err(Error::ShutDown(self.agent)) }
    }

    fn check_handle(&self, given: u64) -> Result<(), Error> {
        match self.agent_handle {
            Some(registered) if registered != given => {
                Err(Error::HandleChanged { agent: self.agent, registered, given })
            }
            _ => Ok(()),
        }
    }

    fn check_acquire(&self, context: ContextId, handle: u64) -> Result<(), Error> {
        self.check_open()?;
        self.check_handle(handle)?;
        if self.contexts.contains_key(&context) {
            Ok(())
        } else {
            Err(Error::NotRegistered { context, agent: self.agent })
        }
    }

    fn check_lease(&self, context: ContextId) -> Result<(), Error> {
        match self.contexts.get(&context) {
            Some(entry) if entry.leases > 0 => Ok(()),
            _ => Err(Error::NotLeased { context, agent: self.agent }),
        }
    }

    /// The bytes to allocate if the buffer does not exist yet.
    fn check_resolve(&self, context: ContextId, buffer: BufferId, wanted: u64) -> Result<u64, Error> {
        self.check_open()?;
        self.check_lease(context)?;
        let agent = self.agent;
        let size = self.slots.sizes.size(buffer).ok_or(Error::NoSuchBuffer { agent, buffer })?;
        if wanted > size {
            return Err(Error::BufferTooSmall { context, agent, buffer, wanted, size });
        }
        self.slots.allocation(buffer).ok_or(Error::NoSuchBuffer { agent, buffer })
    }
}

impl Context {
    fn new(need: Need) -> Self {
        Self { need, leases: 0, returned_early: 0, client: None, queues: Vec::new() }
    }
}
