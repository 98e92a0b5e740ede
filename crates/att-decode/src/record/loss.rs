//! Places where data is missing.

/// Why data is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LossKind {
    /// The hardware says that it dropped packets.
    PacketLoss,
    /// Bytes that belong to no token were stepped over.
    Undecodable,
    /// The chunk ends inside a token.
    CutOff,
    /// Decoding stopped at input that names hardware which does not exist.
    Invalid,
    /// A limit of the streaming decoder was reached: part of a wave is not in its record.
    Limit,
}

impl LossKind {
    /// Short lower-case name.
    pub const fn name(self) -> &'static str {
        match self {
            LossKind::PacketLoss => "packet loss",
            LossKind::Undecodable => "undecodable",
            LossKind::CutOff => "cut off",
            LossKind::Invalid => "invalid",
            LossKind::Limit => "limit",
        }
    }
}

/// A place where data is missing. Never silence: each loss is delivered where it is met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loss {
    /// Why.
    pub kind: LossKind,
    /// Offset in the chunk of the first byte concerned.
    pub byte_offset: u64,
    /// Number of bytes that were skipped, 0 where the bytes never reached the chunk.
    pub bytes: u64,
    /// Shader clock where decoding goes on.
    pub time: i64,
}
