//! Cuts trace streams into what tests compare with the placement log. Written from the public format description
//! only; knows nothing of the encoder.

/// (array, unit, SIMD, slot): the unit is a CU on gfx9, a WGP on gfx10 and later.
pub(crate) type Place = (u8, u8, u8, u8);

/// Something in a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Mark {
    Start {
        place: Place,
        lanes: u8,
    },
    End {
        place: Place,
    },
    /// A user-config register.
    Register {
        register: u16,
        data: u32,
    },
    Compute {
        register: u8,
        data: u32,
    },
    /// REG_INIT of gfx10 and later.
    Dispatch {
        initiator: u32,
    },
}

/// Reads bits of a stream.
struct Bits<'a>(&'a [u32]);

impl Bits<'_> {
    fn get(&self, at: usize, bits: usize) -> u64 {
        (0..bits).fold(0, |value, bit| {
            let position = at + bit;
            let dword = self.0.get(position / 32).copied().unwrap_or(0);
            value | u64::from(dword >> (position % 32) & 1) << bit
        })
    }
}

/// Lengths in bits of the gfx9 kinds.
const GFX9: [usize; 16] = [16, 64, 64, 32, 16, 48, 16, 16, 16, 16, 16, 64, 48, 32, 64, 48];

/// Reads a gfx9 stream (without software header) with times in clocks. A time reset takes effect at its TIME token;
/// it must follow at once, as the model writes it.
pub(crate) fn read_gfx9(stream: &[u32]) -> Vec<(u64, Mark)> {
    let bits = Bits(stream);
    let (mut at, mut time, mut base, mut reset) = (0, 0, None, false);
    let mut marks = Vec::new();
    while at < stream.len() * 32 {
        let f = |from: usize, to: usize| bits.get(at + from, to - from);
        let kind = f(0, 4) as usize;
        time += 4 * if kind == 0 { f(4, 12) } else { f(4, 5) };
        let place = (f(5, 6) as u8, f(6, 10) as u8, f(14, 16) as u8, f(10, 14) as u8);
        assert!(!reset || kind == 1, "kind {kind} between a time reset and its TIME");
        match kind {
            0 => reset = f(13, 16) == 1,
            1 if reset => {
                let clock = f(16, 64);
                let base = *base.get_or_insert(clock - time + 4);
                if clock > base {
                    time = (clock - base) & !3;
                }
                reset = false;
            }
            2 if f(15, 16) == 1 => {
                marks.push((time, Mark::Register { register: f(16, 32) as u16, data: f(32, 64) as u32 }))
            }
            3 => marks.push((time, Mark::Start { place, lanes: f(22, 29) as u8 })),
            5 | 15 => marks.push((time, Mark::Compute { register: f(9, 16) as u8, data: f(16, 48) as u32 })),
            6 => marks.push((time, Mark::End { place })),
            _ => {}
        }
        at += GFX9[kind];
    }
    marks
}

/// Format number of the gfx10, gfx11 and gfx12 streams' headers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rdna {
    Gfx10 = 2,
    Gfx11 = 3,
    Gfx12 = 4,
}

/// Reads a stream of gfx10 or later with times in clocks: header first, then the kinds that the model writes.
pub(crate) fn read_rdna(version: Rdna, stream: &[u32]) -> Vec<(u64, Mark)> {
    let bits = Bits(stream);
    assert_eq!(bits.get(0, 13), 0x11 | (version as u64) << 7, "the header token with its version");
    let (mut at, mut time) = (64, 0);
    let mut marks = Vec::new();
    while at < stream.len() * 32 {
        let f = |from: usize, to: usize| bits.get(at + from, to - from);
        let (step, length, mark) = if f(0, 4) == 0b0000 {
            (0, 4, None)
        } else if f(0, 4) == 0b1000 {
            (f(4, 8) + 4, 8, None)
        } else if f(0, 7) == 0b000_0001 {
            match version {
                Rdna::Gfx10 => (if f(14, 16) == 1 { f(16, 64) } else { 0 }, 64, None),
                Rdna::Gfx11 => (if f(9, 10) == 0 { f(12, 48) } else { 0 }, 48, None),
                Rdna::Gfx12 => (if f(7, 8) == 0 { f(12, 64) } else { 0 }, 64, None),
            }
        } else if f(0, 7) == 0b101_0001 {
            (f(7, 16), 24, None)
        } else if f(0, 7) == 0b111_0001 {
            (f(7, 10), 64, Some(Mark::Dispatch { initiator: f(20, 52) as u32 }))
        } else if f(0, 8) == 0b0110_0001 {
            (f(8, 11), 24, None)
        } else if f(0, 4) == 0b1001 {
            let data = f(32, 64) as u32;
            let mark = if f(15, 16) == 1 {
                Mark::Compute { register: f(16, 32) as u8, data }
            } else {
                Mark::Register { register: f(16, 32) as u16, data }
            };
            (f(4, 7), 64, Some(mark))
        } else if f(0, 5) == 0b01100 {
            let (wgp, slot) =
                if version == Rdna::Gfx12 { (f(10, 14), f(15, 20)) } else { (f(10, 13), f(13, 18)) };
            let place = (f(7, 8) as u8, wgp as u8, f(8, 10) as u8, slot as u8);
            // Waves of 64 show their lanes less one.
            (f(5, 7), 32, Some(Mark::Start { place, lanes: f(25, 32) as u8 + 1 }))
        } else if f(0, 5) == 0b10101 {
            let wgp = if version == Rdna::Gfx12 { f(11, 15) } else { f(11, 14) };
            let place = (f(8, 9) as u8, wgp as u8, f(9, 11) as u8, f(15, 20) as u8);
            (f(5, 8), 20, Some(Mark::End { place }))
        } else {
            panic!("bits {:#x} at {at} are no token that is expected", f(0, 8));
        };
        time += step;
        marks.extend(mark.map(|mark| (time, mark)));
        at += length;
    }
    marks
}
