//! A device with memory and a clock for tests: packets go in as a runtime would write them, results come out of memory.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use wavescope_core::{AqlPacket, Fence, PacketHeader, PacketType};
use wavescope_software_gpu::{
    Access, ClockHost, Device, DeviceConfig, DeviceOptions, Doorbell, Host, Queue, QueueConfig, QueueFault,
    QueueId, Truth, TruthSink,
};

pub(crate) mod sqtt;
pub(crate) mod stream;

/// Memory that both sides see, given out from the front and never taken back. Pages exist once they are touched, so
/// that even the largest trace buffer costs nothing.
pub(crate) struct Arena {
    base: u64,
    size: usize,
    used: AtomicUsize,
}

impl Arena {
    fn new(size: usize) -> Self {
        Self::near(0, size)
    }

    /// At this address if nothing else is there, so that addresses are the same from run to run.
    pub(crate) fn near(address: usize, size: usize) -> Self {
        let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a fresh anonymous mapping at an address of the kernel's choice, which may follow the hint where
        // nothing is mapped, touches nothing that exists.
        let base = unsafe {
            libc::mmap(
                std::ptr::without_provenance_mut(address),
                size,
                access,
                flags | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        assert_ne!(base, libc::MAP_FAILED);
        Self { base: base.expose_provenance() as u64, size, used: AtomicUsize::new(0) }
    }

    /// Address of `bytes` zeroed bytes on a page of their own.
    pub(crate) fn allocate(&self, bytes: usize) -> u64 {
        let offset = self.used.fetch_add(bytes.next_multiple_of(4096), Ordering::Relaxed);
        assert!(offset + bytes <= self.size, "the arena is too small");
        self.base + offset as u64
    }

    fn contains(&self, address: u64, bytes: u64) -> bool {
        address >= self.base && bytes <= self.size as u64 && address - self.base <= self.size as u64 - bytes
    }

    fn at<T>(&self, address: u64) -> &T {
        assert!(
            self.contains(address, size_of::<T>() as u64) && address.is_multiple_of(align_of::<T>() as u64)
        );
        // SAFETY: inside the mapping and aligned by the assertion; T is an atomic integer in every call here, valid
        // for any bytes and free to be shared.
        unsafe { &*std::ptr::with_exposed_provenance::<T>(address as usize) }
    }

    pub(crate) fn load(&self, address: u64) -> u64 {
        self.at::<AtomicU64>(address).load(Ordering::Acquire)
    }

    pub(crate) fn store(&self, address: u64, value: u64) {
        self.at::<AtomicU64>(address).store(value, Ordering::Release);
    }

    pub(crate) fn load_u32(&self, address: u64) -> u32 {
        self.at::<std::sync::atomic::AtomicU32>(address).load(Ordering::Acquire)
    }

    pub(crate) fn store_u32(&self, address: u64, value: u32) {
        self.at::<std::sync::atomic::AtomicU32>(address).store(value, Ordering::Release);
    }

    pub(crate) fn store_u16(&self, address: u64, value: u16) {
        self.at::<std::sync::atomic::AtomicU16>(address).store(value, Ordering::Release);
    }

    pub(crate) fn load_u16(&self, address: u64) -> u16 {
        self.at::<std::sync::atomic::AtomicU16>(address).load(Ordering::Acquire)
    }

    pub(crate) fn store_dwords(&self, address: u64, dwords: &[u32]) {
        (0..).zip(dwords).for_each(|(index, &dword)| self.store_u32(address + 4 * index, dword));
    }

    pub(crate) fn dwords(&self, address: u64, count: u64) -> Vec<u32> {
        (0..count).map(|index| self.load_u32(address + 4 * index)).collect()
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: the mapping of `new`; nothing refers to it any more, since every queue ended before its host.
        unsafe { libc::munmap(std::ptr::with_exposed_provenance_mut(self.base as usize), self.size) };
    }
}

/// How time passes.
pub(crate) enum Clock {
    /// As it does.
    Real(ClockHost),
    /// Only when the model waits for it.
    Virtual(AtomicU64),
    /// As on a host that is slower than its GPU: so many ticks pass whenever somebody looks.
    Slow(AtomicU64, u64),
}

pub(crate) struct TestHost {
    pub(crate) arena: Arena,
    clock: Clock,
    pub(crate) events: Mutex<Vec<(u64, u32)>>,
    pub(crate) errors: Mutex<Vec<(QueueId, QueueFault)>>,
    /// While set, accesses to `stalled` wait.
    pub(crate) stall: AtomicBool,
    pub(crate) stalled: AtomicU64,
}

// SAFETY: only the arena is declared valid, and it lives as long as the host, which outlives every queue.
unsafe impl Host for TestHost {
    fn clock(&self) -> u64 {
        match &self.clock {
            Clock::Real(clock) => clock.ticks(),
            Clock::Virtual(ticks) => ticks.load(Ordering::SeqCst),
            Clock::Slow(ticks, step) => ticks.fetch_add(*step, Ordering::SeqCst),
        }
    }

    fn skip_to(&self, ticks: u64) -> bool {
        match &self.clock {
            Clock::Real(_) => false,
            Clock::Virtual(now) | Clock::Slow(now, _) => {
                now.fetch_max(ticks, Ordering::SeqCst);
                true
            }
        }
    }

    fn raise_event(&self, signal: u64, event_id: u32) {
        self.events.lock().unwrap().push((signal, event_id));
    }

    fn memory_is_valid(&self, address: u64, bytes: u64, access: Access) -> bool {
        while access == Access::Write
            && self.stall.load(Ordering::SeqCst)
            && (address..address.saturating_add(bytes)).contains(&self.stalled.load(Ordering::SeqCst))
        {
            std::thread::yield_now(); // as a page that faults would hold up the access
        }
        self.arena.contains(address, bytes)
    }

    fn queue_error(&self, queue: QueueId, fault: QueueFault) {
        self.errors.lock().unwrap().push((queue, fault));
    }
}

/// A clock that moves only when the model waits.
pub(crate) fn virtual_clock() -> Clock {
    Clock::Virtual(AtomicU64::new(1000))
}

/// A clock that moves on by itself, and by more than small kernels last, 10 microseconds: deterministic too.
pub(crate) fn slow_clock() -> Clock {
    Clock::Slow(AtomicU64::new(1000), 1000)
}

/// Collects the truth.
#[derive(Default)]
pub(crate) struct Notes(pub(crate) Mutex<Vec<Truth>>);

impl TruthSink for Notes {
    fn record(&self, truth: &Truth) {
        self.0.lock().unwrap().push(truth.clone());
    }
}

/// A device with everything around it.
pub(crate) struct Rig {
    pub(crate) device: Device,
    pub(crate) host: Arc<TestHost>,
    pub(crate) notes: Arc<Notes>,
}

impl Rig {
    /// With a clock that moves only when the model waits: deterministic.
    pub(crate) fn new(config: DeviceConfig) -> Self {
        Self::with(config, DeviceOptions::default(), virtual_clock(), 16 << 30)
    }

    pub(crate) fn real_time(config: DeviceConfig) -> Self {
        Self::with(config, DeviceOptions::default(), Clock::Real(ClockHost::new()), 16 << 30)
    }

    pub(crate) fn with(config: DeviceConfig, options: DeviceOptions, clock: Clock, memory: usize) -> Self {
        Self::on(config, options, clock, Arena::new(memory))
    }

    /// The same with its memory at this address, where nothing else may be.
    pub(crate) fn at(config: DeviceConfig, address: u64) -> Self {
        let arena = Arena::near(address as usize, 16 << 30);
        assert_eq!(arena.base, address, "something else is there");
        Self::on(config, DeviceOptions::default(), virtual_clock(), arena)
    }

    fn on(config: DeviceConfig, mut options: DeviceOptions, clock: Clock, arena: Arena) -> Self {
        let host = Arc::new(TestHost {
            arena,
            clock,
            events: Mutex::default(),
            errors: Mutex::default(),
            stall: AtomicBool::new(false),
            stalled: AtomicU64::new(0),
        });
        let notes = Arc::new(Notes::default());
        options.truth.get_or_insert_with(|| Arc::clone(&notes) as Arc<dyn TruthSink>);
        let device = Device::new(config, Arc::clone(&host) as Arc<dyn Host>, options).unwrap();
        Self { device, host, notes }
    }

    pub(crate) fn arena(&self) -> &Arena {
        &self.host.arena
    }

    pub(crate) fn queue(&self, packets: u32) -> RigQueue {
        self.try_queue(packets).unwrap()
    }

    pub(crate) fn try_queue(&self, packets: u32) -> Result<RigQueue, wavescope_software_gpu::Error> {
        self.queue_with(packets, Doorbell::Rung)
    }

    pub(crate) fn queue_with(
        &self,
        packets: u32,
        doorbell: Doorbell,
    ) -> Result<RigQueue, wavescope_software_gpu::Error> {
        let arena = self.arena();
        let ring = arena.allocate(packets as usize * 64);
        let indices = arena.allocate(64);
        // An empty ring holds packets of type INVALID.
        (0..u64::from(packets)).for_each(|packet| arena.store_u16(ring + packet * 64, 1));
        let config = QueueConfig { ring, packets, write_index: indices, read_index: indices + 8, doorbell };
        let queue = self.device.create_queue(config)?;
        Ok(RigQueue { queue, config, host: Arc::clone(&self.host), written: 0 })
    }

    /// A signal with this value: `amd_signal_t` of kind USER.
    pub(crate) fn signal(&self, value: i64) -> u64 {
        let address = self.arena().allocate(64);
        self.arena().store(address, 1);
        self.arena().store(address + 8, value.cast_unsigned());
        address
    }

    /// A signal with an event.
    pub(crate) fn interrupt_signal(&self, value: i64, event: u32) -> u64 {
        let signal = self.signal(value);
        self.arena().store(signal + 16, self.arena().allocate(8));
        self.arena().store(signal + 24, u64::from(event));
        signal
    }

    pub(crate) fn value(&self, signal: u64) -> i64 {
        self.arena().load(signal + 8).cast_signed()
    }

    pub(crate) fn times(&self, signal: u64) -> (u64, u64) {
        (self.arena().load(signal + 32), self.arena().load(signal + 40))
    }

    /// A kernel with waves of 32 lanes where the chip has them (ENABLE_WAVEFRONT_SIZE32).
    pub(crate) fn narrow_kernel(&self) -> u64 {
        let address = self.kernel(3);
        self.arena().store_u32(address + 56, 1 << 10);
        address
    }

    /// A kernel descriptor that asks for this many groups of registers.
    pub(crate) fn kernel(&self, vgpr_granules: u32) -> u64 {
        let address = self.arena().allocate(64);
        self.arena().store_u32(address + 16, 0x100);
        self.arena().store_u32(address + 48, vgpr_granules);
        address
    }

    /// Waits until the signal has fallen to `value`.
    pub(crate) fn wait(&self, signal: u64, value: i64) {
        assert!(self.falls(signal, value, Duration::from_secs(20)), "signal stays at {}", self.value(signal));
    }

    pub(crate) fn falls(&self, signal: u64, value: i64, within: Duration) -> bool {
        within_time(within, || self.value(signal) <= value)
    }

    pub(crate) fn waves(&self) -> Vec<wavescope_software_gpu::WaveTruth> {
        let notes = self.notes.0.lock().unwrap();
        notes
            .iter()
            .filter_map(|truth| if let Truth::Wave(wave) = truth { Some(*wave) } else { None })
            .collect()
    }
}

pub(crate) fn within_time(limit: Duration, mut done: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    while !done() {
        if start.elapsed() > limit {
            return false;
        }
        std::thread::yield_now();
    }
    true
}

/// A queue with its producer side.
pub(crate) struct RigQueue {
    pub(crate) queue: Queue,
    pub(crate) config: QueueConfig,
    host: Arc<TestHost>,
    written: u64,
}

impl RigQueue {
    pub(crate) fn read_index(&self) -> u64 {
        self.host.arena.load(self.config.read_index)
    }

    /// Submits, and lives until `then` is done.
    pub(crate) fn submit_and(mut self, packets: &[AqlPacket], then: impl FnOnce()) {
        self.submit(packets);
        then();
    }

    /// Writes packets, each with its header last, and rings once. Waits for room in the ring.
    pub(crate) fn submit(&mut self, packets: &[AqlPacket]) {
        if packets.is_empty() {
            return;
        }
        for packet in packets {
            let room = || self.written - self.read_index() < u64::from(self.config.packets);
            assert!(within_time(Duration::from_secs(20), room), "the ring stays full");
            let slot = self.config.ring + self.written % u64::from(self.config.packets) * 64;
            self.host.arena.store_dwords(slot + 4, &packet.0[1..]);
            self.host.arena.store_u32(slot, packet.0[0]);
            self.written += 1;
            self.host.arena.store(self.config.write_index, self.written);
            if self.written.is_multiple_of(u64::from(self.config.packets)) {
                self.queue.ring(self.written - 1);
            }
        }
        self.queue.ring(self.written - 1);
    }
}

pub(crate) fn header(kind: PacketType, barrier: bool) -> u32 {
    u32::from(PacketHeader::new(kind, barrier, Fence::System, Fence::System).0)
}

fn with_signal(mut packet: AqlPacket, signal: u64) -> AqlPacket {
    packet.set_completion_signal(signal);
    packet
}

/// The same packet without the barrier bit.
pub(crate) fn overlapping(mut packet: AqlPacket) -> AqlPacket {
    packet.0[0] &= !(1 << 8);
    packet
}

/// A kernel dispatch with the barrier bit.
pub(crate) fn dispatch(kernel: u64, grid: [u32; 3], workgroup: [u16; 3], signal: u64) -> AqlPacket {
    let mut packet = AqlPacket([0; 16]);
    packet.0[0] = header(PacketType::KERNEL_DISPATCH, true) | 3 << 16;
    packet.0[1] = u32::from(workgroup[0]) | u32::from(workgroup[1]) << 16;
    packet.0[2] = u32::from(workgroup[2]);
    packet.0[3..6].copy_from_slice(&grid);
    packet.0[8] = kernel as u32;
    packet.0[9] = (kernel >> 32) as u32;
    with_signal(packet, signal)
}

/// A barrier packet on up to five signals.
pub(crate) fn barrier(kind: PacketType, signals: &[u64], signal: u64) -> AqlPacket {
    let mut packet = AqlPacket([0; 16]);
    packet.0[0] = header(kind, false);
    for (index, &handle) in signals.iter().enumerate() {
        packet.0[2 + 2 * index] = handle as u32;
        packet.0[3 + 2 * index] = (handle >> 32) as u32;
    }
    with_signal(packet, signal)
}

/// A barrier-value packet: waits until `(value & mask) condition reference`.
pub(crate) fn barrier_value(on: u64, condition: u32, reference: i64, mask: i64, signal: u64) -> AqlPacket {
    let mut packet = AqlPacket([0; 16]);
    packet.0[0] = header(PacketType::VENDOR_SPECIFIC, false) | 2 << 16;
    for (dword, value) in [(2, on), (4, reference.cast_unsigned()), (6, mask.cast_unsigned())] {
        packet.0[dword] = value as u32;
        packet.0[dword + 1] = (value >> 32) as u32;
    }
    packet.0[8] = condition;
    with_signal(packet, signal)
}

/// A PM4 packet that runs the command buffer at `address`.
pub(crate) fn commands(address: u64, dwords: u32, signal: u64) -> AqlPacket {
    let mut packet = AqlPacket([0; 16]);
    packet.0[0] = header(PacketType::VENDOR_SPECIFIC, true) | 1 << 16;
    packet.0[1] = 0xC002_3F00;
    packet.0[2] = address as u32;
    packet.0[3] = (address >> 32) as u32;
    packet.0[4] = dwords | 1 << 23 | 1 << 28;
    packet.0[5] = 10;
    with_signal(packet, signal)
}
