//! An instance of the built-in trace program.

use std::cell::Cell;
use std::sync::Arc;

use wavescope_core::AqlPacket;

use super::buffers::{
    BufferPackets, BufferStatus, ring_status, status_commands, swap_commands, swaps_in_ring,
};
use super::layout::PAGE;
use super::program::{DATA, Plan, ring_buffer};
use super::readback::{TraceReadback, read_control};
use crate::commands::{Commands, carrier, upload};
use crate::error::Error;
use crate::memory::{Buffer, BufferFlags, Memory};
use crate::program::TraceInstance;
use crate::status::Status;

/// Control, data and commands; freed in this order.
pub(super) struct BuiltinTraceInstance {
    control: Buffer,
    data: Vec<Buffer>,
    commands: Buffer,
    ring_commands: Vec<Buffer>,
    /// Swaps since the last start.
    swaps: Cell<u64>,
    plan: Arc<Plan>,
}

impl BuiltinTraceInstance {
    /// Allocates control, data, then one buffer for start and stop.
    pub(super) fn new(plan: &Arc<Plan>, memory: &Arc<dyn Memory>) -> Result<Self, Error> {
        let layout = &plan.layout;
        let control = Buffer::allocate(memory, layout.control_bytes, BufferFlags::TRACE_CONTROL)?;
        let mut data = Vec::with_capacity(layout.buffers as usize);
        for _ in 0..layout.buffers {
            let buffer = Buffer::allocate(memory, layout.data_bytes, BufferFlags::TRACE_DATA)?;
            if buffer.address() % PAGE != 0 {
                return Err(Error::MisalignedTraceBuffer { address: buffer.address() });
            }
            data.push(buffer);
        }
        let bytes = plan.start.padded_bytes() + plan.stop.padded_bytes();
        let commands = Buffer::allocate(memory, bytes, BufferFlags::COMMANDS)?;
        let plan = Arc::clone(plan);
        let instance = Self { control, data, commands, ring_commands: Vec::new(), swaps: Cell::new(0), plan };
        let bases = instance.bases();
        let mut scratch = Vec::new();
        upload(memory, &instance.plan.start, &bases, instance.commands.address(), &mut scratch);
        upload(memory, &instance.plan.stop, &bases, instance.stop_address(), &mut scratch);
        Ok(instance)
    }

    fn stop_address(&self) -> u64 {
        self.commands.address() + self.plan.start.padded_bytes()
    }

    fn bases(&self) -> Vec<u64> {
        std::iter::once(&self.control).chain(&self.data).map(Buffer::address).collect()
    }

    fn packet(&self, address: u64, commands: &Commands) -> AqlPacket {
        carrier(self.plan.chip.generation, address, commands.dwords().len() as u32)
    }

    fn control_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.plan.layout.record_bytes() as usize];
        self.control.memory().load(self.control.address(), &mut bytes);
        bytes
    }

    /// Puts commands into a buffer of their own and returns the packet that runs them.
    fn ring_packet(&mut self, commands: &Commands) -> Result<AqlPacket, Error> {
        let memory = Arc::clone(self.control.memory());
        let buffer = Buffer::allocate(&memory, commands.bytes(), BufferFlags::COMMANDS)?;
        upload(&memory, commands, &self.bases(), buffer.address(), &mut Vec::new());
        let packet = self.packet(buffer.address(), commands);
        self.ring_commands.push(buffer);
        Ok(packet)
    }

    fn check_ring(&self, se: u32) -> Result<(), Error> {
        let layout = &self.plan.layout;
        let in_ring = layout.buffers > 1 && layout.selected().any(|selected| selected == se);
        if in_ring { Ok(()) } else { Err(Error::NoBufferRing { se }) }
    }
}

impl TraceInstance for BuiltinTraceInstance {
    fn start(&self) -> AqlPacket {
        self.packet(self.commands.address(), &self.plan.start)
    }

    fn stop(&self) -> AqlPacket {
        self.packet(self.stop_address(), &self.plan.stop)
    }

    fn control(&self) -> (u64, u64) {
        (self.control.address(), self.control.bytes())
    }

    fn data(&self) -> Vec<(u64, u64)> {
        self.data.iter().map(|buffer| (buffer.address(), buffer.bytes())).collect()
    }

    fn readback(&self) -> TraceReadback {
        let data = self.data.first().map_or(0, Buffer::address);
        read_control(&self.plan.layout, &self.control_bytes(), data)
    }

    fn iterate(&self, each: &mut dyn FnMut(u32, &[u8])) -> Status {
        let readback = self.readback();
        let current = self.current();
        self.swaps.set(0);
        let Some(data) = self.data.get(current) else { return readback.status };
        for engine in &readback.engines {
            let header = engine.header.map(u64::to_le_bytes);
            let header = header.as_ref().map_or(&[][..], |header| header);
            let mut bytes = vec![0; header.len() + engine.bytes as usize];
            bytes[..header.len()].copy_from_slice(header);
            data.memory().copy_out(data.address() + engine.offset, &mut bytes[header.len()..]);
            each(engine.se, &bytes);
        }
        readback.status
    }

    fn buffer_packets(&mut self, se: u32) -> Result<BufferPackets, Error> {
        self.check_ring(se)?;
        let plan = Arc::clone(&self.plan);
        let mut swaps = Vec::new();
        for at in 0..swaps_in_ring(&plan.chip, &plan.layout) {
            let commands = swap_commands(&plan.chip, &plan.layout, se, at)?;
            swaps.push(self.ring_packet(&commands)?);
        }
        let query = self.ring_packet(&status_commands(&plan.chip, &plan.layout, se)?)?;
        Ok(BufferPackets { header: plan.layout.header(se).unwrap_or(0), query, swaps })
    }

    fn buffer_status(&mut self, se: u32) -> Result<BufferStatus, Error> {
        self.check_ring(se)?;
        let mut status = ring_status(&self.plan.layout, &self.control_bytes(), se);
        if status.needs_swap {
            status.swaps = self.swaps.get();
            status.data = self.data.get(self.current()).map_or(0, Buffer::address);
            self.swaps.set(status.swaps + 1);
        }
        Ok(status)
    }
}

impl BuiltinTraceInstance {
    /// Index in `data` of the buffer that was begun by the last swap, or by start: the ring entry before the one that
    /// the engine goes to next.
    fn current(&self) -> usize {
        let buffers = u64::from(self.plan.layout.buffers);
        let entry = (self.swaps.get() + buffers - 1) % buffers;
        usize::from(ring_buffer(&self.plan.layout, entry as u32) - DATA)
    }
}
