//! Tokens of gfx10 and later.
//!
//! Variable-length tokens in units of four bits (eight on gfx1250); a pattern in the lowest bits says the kind, a few
//! bits behind it the time since the token before, in shader clocks (ROCm/rocm-systems,
//! projects/rocprof-trace-decoder `gfx10/`, `gfx11/`, `gfx12/`, `mi400/`; the two execution tokens and what MISC looks
//! like in captures: tinygrad/tinygrad `tinygrad/renderer/amd/sqtt.py`).

mod body;
mod shape;

use super::bits::BitWriter;

/// Which layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// gfx10.3.
    Gfx10,
    /// gfx11.
    Gfx11,
    /// gfx12.
    Gfx12,
    /// gfx1250.
    Gfx1250,
}

/// Where a wave sits in its shader engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location {
    /// Shader array.
    pub sa: u8,
    /// WGP.
    pub unit: u8,
    /// SIMD of the WGP.
    pub simd: u8,
    /// Wave slot.
    pub slot: u8,
}

/// The queue that a token belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pipe {
    /// Micro-engine.
    pub me: u8,
    /// Pipe of it.
    pub pipe: u8,
}

/// What a TIMESTAMP holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stamp {
    /// Clocks that have passed.
    Elapsed,
    /// A sample of the real-time clock.
    RealTime,
    /// A type of gfx10 that means nothing: 0 or 3.
    Other(u8),
}

/// Patterns that a later generation gave up and its hardware does not send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leftover {
    /// gfx12: SHADER_DATA.
    ShaderData,
    /// gfx12, gfx1250: SHADER_DATA_SHORT.
    ShaderDataShort,
    /// gfx1250: WAVE_END.
    WaveEnd,
    /// gfx1250: INST.
    Inst,
}

/// The first token: what was traced how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// 1 or 2 on gfx10, 3 on gfx11, 4 on gfx12, 5 on gfx1250.
    pub version: u8,
    /// SIMD whose waves are traced in detail.
    pub simd: u8,
    /// WGP of it.
    pub wgp: u8,
    /// Shader array of it.
    pub sa: u8,
    /// Bits from 20 on: chip constants and, from gfx12 on, the trace's settings.
    pub chip: u64,
}

/// One token without its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token {
    /// Nothing; also what a stream is filled up with.
    Nop,
    /// Time alone: its step begins at [`Layout::time_base`].
    Time {
        /// gfx1250: the other pattern that means the same.
        alternate: bool,
    },
    /// gfx1250: time alone, up to 255 clocks.
    MediumTime,
    /// Time alone, or a sample of the real-time clock.
    Timestamp {
        /// Which.
        stamp: Stamp,
        /// Whether tokens were lost before it (gfx11 and later).
        lost: bool,
        /// A bit whose meaning is not public (gfx11 and later).
        tag: bool,
        /// The clocks or the sample.
        value: u64,
    },
    /// What was traced how.
    Header(Header),
    /// Time, and what happens to the trace itself.
    Misc {
        /// Bit mask of what happens.
        flags: u8,
        /// gfx1250: first and last of a cluster, number of the cluster.
        cluster: Option<(bool, bool, u8)>,
    },
    /// A register write.
    Reg {
        /// Whose.
        pipe: Pipe,
        /// A bit whose meaning is not public.
        rdp: bool,
        /// Register context.
        context: u8,
        /// Whether it is a compute register.
        compute: bool,
        /// Its number.
        register: u16,
        /// What was written.
        data: u32,
    },
    /// What a dispatch or draw begins with.
    RegInit {
        /// Address space.
        vmid: u8,
        /// Whose.
        pipe: Pipe,
        /// 2: a dispatch.
        kind: u8,
        /// The initiator register.
        data: u32,
        /// Synchronisation id.
        sync: u16,
    },
    /// An event of the command processor.
    Event {
        /// Whether it waits for the bottom of the pipe.
        bottom: bool,
        /// Kind of queue.
        kind: u8,
        /// Whose.
        pipe: Pipe,
        /// The event type.
        id: u8,
    },
    /// Events that meet.
    EventSync {
        /// The bits behind the time.
        data: u32,
    },
    /// A wave was given its resources.
    WaveAlloc {
        /// The bits behind the time.
        data: u16,
    },
    /// A wave begins.
    WaveStart {
        /// Where.
        location: Location,
        /// Queue of the pipe (gfx10, gfx11).
        queue: u8,
        /// Whose.
        pipe: Pipe,
        /// Two bits behind the ME (one on gfx10 and gfx11).
        dispatcher: u8,
        /// Threads, or a context switch.
        count: u8,
        /// What WAVE_START_EXT carries behind it.
        extension: Option<u16>,
    },
    /// gfx12 and later: a further byte behind WAVE_START_EXT; its lowest bit is set.
    Continuation {
        /// The byte.
        byte: u8,
    },
    /// Waves of the target are ready for their next instruction.
    WaveReady {
        /// By wave slot.
        slots: u16,
    },
    /// A wave ends.
    WaveEnd {
        /// Where.
        location: Location,
    },
    /// A wave of the target issues an instruction.
    Inst {
        /// Bit 3 on gfx10 and gfx11, which is clear in captures; a bit of time on gfx12.
        odd: bool,
        /// The second pass of a wave of 64.
        half: bool,
        /// Wave slot.
        slot: u8,
        /// What it is.
        code: u16,
    },
    /// The same for vector ALU work of one pass.
    ValuInst {
        /// The second pass of a wave of 64.
        half: bool,
        /// Wave slot.
        slot: u8,
    },
    /// gfx1250: the same; the wave is told by its place in the list of those that issued last.
    ValuRecent {
        /// Bit 3, whose meaning is not public.
        odd: bool,
        /// Place in the list, 0 to 4.
        position: u8,
    },
    /// An instruction of one wave that needs no unit.
    ImmOne {
        /// Wave slot.
        slot: u8,
    },
    /// The same of several waves.
    Immediate {
        /// By wave slot.
        slots: u16,
    },
    /// An ALU begins.
    AluExec {
        /// 1: scalar, 2: vector, 3: both.
        kind: u8,
    },
    /// A memory unit begins.
    VmemExec {
        /// 0: LDS, 1: LDS of the other SIMD, 2: vector memory, 3: that of the other SIMD.
        kind: u8,
    },
    /// Where a wave goes on.
    NewPc {
        /// Wave slot.
        slot: u8,
        /// Address, a multiple of four.
        pc: u64,
        /// Whether the address is not valid.
        error: bool,
    },
    /// A word that a shader wrote.
    ShaderData {
        /// Where.
        location: Location,
        /// gfx10, gfx11: 1 for invalid; later: 0 for user.
        flags: u8,
        /// The word.
        data: u32,
    },
    /// An immediate that a shader wrote.
    ShaderDataShort {
        /// Where.
        location: Location,
        /// As in [`Token::ShaderData`].
        flags: u8,
        /// The immediate.
        data: u8,
    },
    /// Counters of how busy units are.
    UtilCounter {
        /// The bits behind the time.
        data: u64,
    },
    /// gfx12 and later: active lanes of one instruction.
    ExecPopcount1 {
        /// The bits behind the time.
        data: u16,
    },
    /// gfx12 and later: active lanes of three instructions.
    ExecPopcount3 {
        /// The bits behind the time.
        data: u64,
    },
    /// gfx1250: how LDS is divided.
    LdsConfig {
        /// The bits behind the time.
        data: u16,
    },
    /// A pattern that nothing is known about. It carries no time.
    Unknown {
        /// Its four bits (eight on gfx1250).
        bits: u8,
    },
    /// A pattern of an older generation.
    Leftover {
        /// Which.
        kind: Leftover,
        /// The bits behind the time.
        data: u64,
    },
}

impl Layout {
    /// What [`Token::Time`] adds to its field.
    pub const fn time_base(self) -> u64 {
        match self {
            Self::Gfx10 | Self::Gfx11 | Self::Gfx12 => 4,
            Self::Gfx1250 => 1,
        }
    }

    const fn pick<T: Copy>(self, gfx10: T, gfx11: T, gfx12: T, gfx1250: T) -> T {
        match self {
            Self::Gfx10 => gfx10,
            Self::Gfx11 => gfx11,
            Self::Gfx12 => gfx12,
            Self::Gfx1250 => gfx1250,
        }
    }
}

impl Token {
    /// Bits of the token.
    pub fn bits(&self, layout: Layout) -> u32 {
        self.shape(layout).bits
    }

    /// The least and the greatest step of time that the token carries itself. Without time of its own: 0 and 0.
    pub fn steps(&self, layout: Layout) -> (u64, u64) {
        let least = match self {
            Self::Time { .. } => layout.time_base(),
            Self::ValuRecent { position, .. } => return (1, if *position < 3 { 4 } else { 2 }),
            _ => 0,
        };
        (least, least + (1 << self.shape(layout).time.1) - 1)
    }

    /// Writes the token, `step` clocks after the one before.
    pub fn write(&self, layout: Layout, step: u64, out: &mut BitWriter) {
        let shape = self.shape(layout);
        let (at, bits) = shape.time;
        let field = u128::from(step.wrapping_sub(self.steps(layout).0)) & ((1 << bits) - 1);
        out.push(shape.pattern | field << at | self.body(layout, step), shape.bits);
    }
}
