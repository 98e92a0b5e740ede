//! The kinds of token that any generation writes.

use std::fmt;

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// Kind of a token. One list for all generations; each generation's table uses its share.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum TokenKind { $($(#[$doc])* $name,)* }

        impl TokenKind {
            /// Every kind, in the order of their numbers.
            pub const ALL: &[TokenKind] = &[$(TokenKind::$name,)*];

            /// Name as a dump prints it.
            pub const fn name(self) -> &'static str {
                match self { $(TokenKind::$name => $text,)* }
            }
        }
    };
}

kinds! {
    /// Padding.
    Nop = "NOP",
    /// A large step of the clock, or a sample of the real-time clock.
    Timestamp = "TIMESTAMP",
    /// Version, target and settings of an RDNA stream.
    Header = "HEADER",
    /// Flags and time: losses, stalls, context save.
    Misc = "MISC",
    /// New program counter of a wave, 72 bits.
    NewPc12 = "NEW_PC12",
    /// A wave starts, with its work group.
    WaveStartExt = "WAVE_START_EXT",
    /// A pattern that no generation defines.
    Unknown = "UNKNOWN",
    /// gfx1250: advances the clock by up to 255.
    MediumTime = "MEDIUM_TIME",
    /// A wave starts.
    WaveStart = "WAVE_START",
    /// A wave ends.
    WaveEnd = "WAVE_END",
    /// Register write.
    Reg = "REG",
    /// New program counter of a wave, 64 bits.
    NewPc = "NEW_PC",
    /// Register initialisation; dispatches begin with one.
    RegInit = "REG_INIT",
    /// Pipeline event.
    Event = "EVENT",
    /// An instruction of a wave.
    Inst = "INST",
    /// A vector instruction of a wave, short form.
    ValuInst = "VALU_INST",
    /// An immediate instruction (s_nop, s_waitcnt) of one wave.
    ImmOne = "IMM_ONE",
    /// Immediate instructions of up to 16 waves.
    Immediate = "IMMEDIATE",
    /// Waves that became ready to issue.
    WaveReady = "WAVE_READY",
    /// A 32-bit word written by a shader (RDNA).
    ShaderData = "SHADER_DATA",
    /// An 8-bit value written by a shader.
    ShaderDataShort = "SHADER_DATA_SHORT",
    /// A byte that continues a WAVE_START_EXT.
    WaveStartExtByte = "WSE_CONT",
    /// The software header in front of a gfx9 stream.
    SwHeader = "SW_HEADER",
    /// Compute register write (gfx9).
    RegCs = "REG_CS",
    /// Privileged compute register write (gfx9).
    RegCsPriv = "REG_CS_PRIV",
    /// Compute event (gfx9).
    EventCs = "EVENT_CS",
    /// Second graphics pipe's event (gfx9).
    EventGfx1 = "EVENT_GFX1",
    /// New program counter of a wave (gfx9).
    InstPc = "INST_PC",
    /// A 32-bit word written by a shader (gfx9).
    ShaderData9 = "SHADERDATA",
    /// Issue states of the waves of a SIMD (gfx9).
    Issue = "ISSUE",
    /// Streamed performance counters (gfx9).
    Perf = "PERF",
    /// Pipeline event with synchronisation.
    EventSync = "EVENT_SYNC",
    /// Utilisation counter, 64 bits.
    UtilCounter = "UTIL_COUNTER",
    /// Utilisation counter, 48 bits.
    UtilCounter11 = "UTIL_COUNTER11",
    /// Resources of a wave are allocated.
    WaveAlloc = "WAVE_ALLOC",
    /// Count of active lanes, one value.
    ExecPopcount1 = "EXEC_POPCOUNT1",
    /// Count of active lanes, three values.
    ExecPopcount3 = "EXEC_POPCOUNT3",
    /// An arithmetic unit starts executing.
    AluExec = "ALUEXEC",
    /// A memory unit starts executing.
    VmemExec = "VMEMEXEC",
    /// LDS configuration.
    LdsConfig = "LDS_CONFIG",
    /// Advances the clock (RDNA) or carries an absolute time (gfx9).
    Time = "TIME",
}

impl TokenKind {
    /// Whether it does nothing on RDNA but take its time, losses apart. These come last in the list.
    #[inline(always)]
    pub(crate) const fn is_quiet(self) -> bool {
        self as u8 >= TokenKind::EventSync as u8
    }

    /// Whether starts and ends of waves depend on it, or it is more than a step in a reading loop of RDNA. These come
    /// first in the list.
    #[inline(always)]
    pub(crate) const fn matters_to_occupancy(self) -> bool {
        self as u8 <= TokenKind::Reg as u8
    }
}

impl fmt::Display for TokenKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
