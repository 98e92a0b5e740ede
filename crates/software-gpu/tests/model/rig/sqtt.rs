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
