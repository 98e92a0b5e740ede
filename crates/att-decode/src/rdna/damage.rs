//! Damage that an RDNA stream shows, and finding the way back.
//!
//! The format has no synchronisation mark: almost any bits read as tokens. What a healthy stream never has are the
//! patterns of no token, a header of another version and a clock step of days. Past such a place the stream is taken
//! up where many tokens in a row read sensibly.

use super::state::RdnaDecoder;
use crate::bits::{bits, window};
use crate::generation::Generation;
use crate::options::Recovery;
use crate::record::{Loss, LossKind};
use crate::session::Outside;
use crate::token::timestamp::Timestamp;
use crate::token::{RdnaCursor, TokenKind, is_padding, lookup, padding, table};

/// Tokens in a row that must read sensibly.
const PROBE_TOKENS: usize = 24;

/// Clock steps above this are damage: two hours at 2 GHz and more.
const LONGEST_STEP: i64 = 1 << 44;

/// Whether a token cannot be in a healthy stream of this generation.
fn is_damage(generation: Generation, kind: TokenKind, raw: u64) -> bool {
    match kind {
        TokenKind::Unknown => true,
        TokenKind::Header => {
            let version = bits(raw, 7, 13);
            match generation {
                Generation::Gfx10 | Generation::Gfx9 => !(1..=2).contains(&version),
                Generation::Gfx11 => version != 3,
                Generation::Gfx12 => version != 4,
                Generation::Gfx1250 => version != 5,
            }
        }
        TokenKind::Timestamp => Timestamp::decode(generation, raw).step > LONGEST_STEP,
        _ => false,
    }
}

/// What reading ahead from a place found.
enum Probe {
    Sensible,
    Damage,
    /// The data end before that is decided.
    Undecided,
}

fn probe(generation: Generation, data: &[u8], mut bit: u64) -> Probe {
    let table = table(generation);
    let unit = RdnaCursor::unit(generation);
    for _ in 0..PROBE_TOKENS {
        let Some(raw) = window(data, bit) else { return Probe::Undecided };
        if is_padding(raw) {
            bit += padding(raw, unit);
            continue;
        }
        let entry = *lookup(table, raw);
        if is_damage(generation, entry.kind, raw) {
            return Probe::Damage;
        }
        bit += u64::from(entry.step).next_multiple_of(unit);
    }
    Probe::Sensible
}

/// Where to go on after a token that may be damage.
pub(super) enum Way {
    /// Take the token as it is.
    Ahead,
    /// Go on at another bit.
    At(u64),
    /// More data must come first.
    Wait,
}

impl RdnaDecoder {
    /// Looks at a token of a kind that may be damage, at bit `bit` of data that begin at byte `base` of the chunk.
    #[cold]
    pub(super) fn look_at_damage(
        &mut self,
        token: (TokenKind, u64),
        data: &[u8],
        (bit, base): (u64, u64),
        time: i64,
        out: &mut Outside<'_>,
    ) -> Way {
        let (kind, raw) = token;
        let unit = RdnaCursor::unit(self.generation);
        let byte_offset = base + bit / 8;
        if out.recovery == Recovery::AsPublicDecoder {
            if kind == TokenKind::Unknown {
                let bytes = unit.div_ceil(8);
                out.emitter.loss(Loss { kind: LossKind::Undecodable, byte_offset, bytes, time });
            }
            return Way::Ahead;
        }
        if !is_damage(self.generation, kind, raw) {
            return Way::Ahead;
        }
        let mut next = bit + unit;
        loop {
            match probe(self.generation, data, next) {
                Probe::Sensible => break,
                Probe::Damage => next += unit,
                Probe::Undecided if self.is_last => break,
                Probe::Undecided => return Way::Wait,
            }
        }
        self.is_lossy = true;
        let bytes = (base + next / 8).saturating_sub(byte_offset).max(1);
        out.emitter.loss(Loss { kind: LossKind::Undecodable, byte_offset, bytes, time });
        Way::At(next)
    }
}
