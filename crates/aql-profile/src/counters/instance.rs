//! An instance of the built-in counter program.

use std::ops::ControlFlow;
use std::sync::Arc;

use wavescope_core::AqlPacket;

use super::program::Plan;
use super::read::VALUE_BYTES;
use super::samples::Sample;
use crate::commands::{Commands, carrier, upload};
use crate::error::Error;
use crate::memory::{Buffer, BufferFlags, Memory};
use crate::program::CounterInstance;
use crate::status::Status;

/// Output and commands; freed in this order.
pub(super) struct BuiltinCounterInstance {
    output: Buffer,
    /// Start and stop live where the first instance put them.
    commands: Arc<Buffer>,
    /// A sibling's own read commands.
    read_commands: Option<Buffer>,
    plan: Arc<Plan>,
}

impl BuiltinCounterInstance {
    /// Allocates output, then one buffer for read, start and stop, in that order.
    pub(super) fn new(plan: &Arc<Plan>, memory: &Arc<dyn Memory>) -> Result<Self, Error> {
        let output = allocate_output(plan, memory)?;
        let [read, start, stop] = [&plan.read, &plan.start, &plan.stop];
        let bytes = read.padded_bytes() + start.padded_bytes() + stop.padded_bytes();
        let commands = Buffer::allocate(memory, bytes, BufferFlags::COMMANDS)?;
        let bases = [output.address()];
        let mut scratch = Vec::with_capacity(read.bytes() as usize);
        let mut at = commands.address();
        for part in [read, start, stop] {
            upload(memory, part, &bases, at, &mut scratch);
            at += part.padded_bytes();
        }
        Ok(Self { output, commands: Arc::new(commands), read_commands: None, plan: Arc::clone(plan) })
    }

    fn start_address(&self) -> u64 {
        self.commands.address() + self.plan.read.padded_bytes()
    }

    fn packet(&self, address: u64, commands: &Commands) -> AqlPacket {
        carrier(self.plan.chip.generation, address, commands.dwords().len() as u32)
    }
}

fn allocate_output(plan: &Plan, memory: &Arc<dyn Memory>) -> Result<Buffer, Error> {
    let output = Buffer::allocate(memory, plan.output_bytes, BufferFlags::COUNTER_OUTPUT)?;
    memory.store_zeros(output.address(), &plan.zeroed);
    Ok(output)
}

impl CounterInstance for BuiltinCounterInstance {
    fn start(&self) -> AqlPacket {
        self.packet(self.start_address(), &self.plan.start)
    }

    fn read(&self) -> AqlPacket {
        let buffer = self.read_commands.as_ref().unwrap_or(&self.commands);
        self.packet(buffer.address(), &self.plan.read)
    }

    fn stop(&self) -> AqlPacket {
        self.packet(self.start_address() + self.plan.start.padded_bytes(), &self.plan.stop)
    }

    fn output(&self) -> (u64, u64) {
        (self.output.address(), self.output.bytes())
    }

    fn clear(&self) {
        let zeros = vec![0; self.output.bytes() as usize];
        self.output.memory().store(self.output.address(), &zeros);
    }

    fn iterate(&self, each: &mut dyn FnMut(&Sample, u64) -> ControlFlow<Status>) -> Result<(), Error> {
        let mut values = vec![0; self.output.bytes() as usize];
        self.output.memory().load(self.output.address(), &mut values);
        let (values, _) = values.as_chunks::<{ VALUE_BYTES as usize }>();
        for sample in &self.plan.samples {
            let Some(value) = values.get(sample.slot as usize) else {
                return Err(Error::Callback { status: Status::ERROR });
            };
            match each(sample, u64::from_le_bytes(*value)) {
                ControlFlow::Continue(()) => {}
                ControlFlow::Break(Status::SUCCESS | Status::INFO_BREAK) => return Ok(()),
                ControlFlow::Break(status) => return Err(Error::Callback { status }),
            }
        }
        Ok(())
    }

    fn sibling(&self) -> Result<Box<dyn CounterInstance>, Error> {
        let memory = self.output.memory();
        let output = allocate_output(&self.plan, memory)?;
        let read = &self.plan.read;
        let commands = Buffer::allocate(memory, read.padded_bytes(), BufferFlags::COMMANDS)?;
        let mut scratch = Vec::with_capacity(read.bytes() as usize);
        upload(memory, read, &[output.address()], commands.address(), &mut scratch);
        let (shared, plan) = (Arc::clone(&self.commands), Arc::clone(&self.plan));
        Ok(Box::new(Self { output, commands: shared, read_commands: Some(commands), plan }))
    }
}
