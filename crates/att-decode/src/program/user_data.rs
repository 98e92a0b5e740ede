//! Marker words that the capturing library writes to user-data registers.
//!
//! Words alternate between header and payload once a magic word has switched them on. Layout:
//! `include/rocprof_trace_decoder/trace_decoder_instrument.h` in ROCm/rocm-systems.

use super::code_objects::CodeObjects;
use super::registers::{Queue, set_high, set_low};
use crate::bits::bits;
use crate::record::RealtimeSample;

/// Switches the words on: the bytes 0, 'R', 'O', 'C'.
pub(crate) const SWITCH_ON: u32 = 0x434f_5200;

/// Opcode of a code object's word.
const CODE_OBJECT: u64 = 4;
/// Opcode of a clock sample (gfx9).
const CLOCK: u64 = 5;
/// Opcode of facts about the agent.
const AGENT_INFO: u64 = 6;
/// Opcode of the short clock sample (gfx9).
const CLOCK_LOW: u64 = 7;

/// Payload types of a code object.
pub(crate) mod payload {
    pub(crate) const TAIL: u8 = 0;
    pub(crate) const SIZE_LO: u8 = 1;
    pub(crate) const ADDRESS_LO: u8 = 2;
    pub(crate) const ADDRESS_HI: u8 = 3;
    pub(crate) const SIZE_HI: u8 = 4;
    pub(crate) const ID_LO: u8 = 5;
    pub(crate) const ID_HI: u8 = 6;
    /// No type: its header takes no payload.
    pub(crate) const NONE: u8 = 7;

    /// The word that announces a payload of this type.
    pub(crate) const fn header(kind: u8) -> u32 {
        super::CODE_OBJECT as u32 | (kind as u32) << 8
    }
}

/// Kilohertz to Hertz.
const HZ_PER_UNIT: u64 = 1000;

/// A code object under construction, kept per queue: later words may leave fields as they were.
#[derive(Debug, Clone, Copy, Default)]
struct Fields {
    size: u64,
    address: u64,
    id: u64,
}

/// What a word completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Word {
    /// Nothing yet.
    Nothing,
    /// A code object was loaded.
    Loaded { id: u64, address: u64, size: u64 },
    /// A code object was unloaded.
    Unloaded { id: u64 },
    /// The counter interval arrived (gfx9 fills counter gaps with it).
    Interval,
}

/// State of the marker words of a chunk.
#[derive(Debug, Clone, Default)]
pub(crate) struct UserData {
    on: bool,
    pending: Option<u8>,
    fields: [Fields; Queue::COUNT],
    clock: ClockWords,
    /// Frequency of the real-time clock in Hz, 0 for unknown.
    pub(crate) realtime_hz: u64,
    /// Clocks between two counter samples, 0 for unknown.
    pub(crate) counter_interval: u32,
}

impl UserData {
    /// Whether the words were switched on.
    pub(crate) fn is_on(&self) -> bool {
        self.on
    }

    /// Takes a word written to the marker register.
    pub(crate) fn marker_word(&mut self, word: u32, queue: Queue, code: &mut CodeObjects) -> Word {
        if !self.on {
            self.on = word == SWITCH_ON;
            return Word::Nothing;
        }
        match self.pending.take() {
            Some(kind) => self.payload_word(kind, word, queue, code),
            None => self.header_word(u64::from(word)),
        }
    }

    fn header_word(&mut self, word: u64) -> Word {
        let (opcode, kind, value) = (bits(word, 0, 8), bits(word, 8, 12) as u8, bits(word, 12, 32));
        match (opcode, kind) {
            (AGENT_INFO, 0) => self.realtime_hz = value * HZ_PER_UNIT,
            (AGENT_INFO, 1) => {
                self.counter_interval = value as u32;
                return Word::Interval;
            }
            (CODE_OBJECT, kind) if value == 0 && kind != payload::NONE => self.pending = Some(kind),
            _ => {}
        }
        Word::Nothing
    }

    fn payload_word(&mut self, kind: u8, word: u32, queue: Queue, code: &mut CodeObjects) -> Word {
        let fields = &mut self.fields[queue.index()];
        match kind {
            payload::SIZE_LO => set_low(&mut fields.size, word),
            payload::SIZE_HI => set_high(&mut fields.size, word),
            payload::ADDRESS_LO => set_low(&mut fields.address, word),
            payload::ADDRESS_HI => set_high(&mut fields.address, word),
            payload::ID_LO => set_low(&mut fields.id, word),
            payload::ID_HI => set_high(&mut fields.id, word),
            payload::TAIL => return tail(*fields, u64::from(word), code),
            _ => {}
        }
        Word::Nothing
    }

    /// Takes a word written to the clock register (gfx9).
    pub(crate) fn clock_word(&mut self, word: u32, time: i64) -> Option<RealtimeSample> {
        if self.on { self.clock.take(word, time) } else { None }
    }
}

/// The last word of a code object: load or unload.
fn tail(fields: Fields, word: u64, code: &mut CodeObjects) -> Word {
    let (is_unload, before_trace, old_id) = (bits(word, 0, 1) == 1, bits(word, 1, 2) == 1, bits(word, 2, 32));
    let id = if old_id != 0 { old_id } else { fields.id };
    let Fields { address, size, .. } = fields;
    match is_unload {
        true if code.unload(id) => Word::Unloaded { id },
        false if code.load(id, address, size, before_trace) => Word::Loaded { id, address, size },
        _ => Word::Nothing,
    }
}

/// Clock samples that come in several words (gfx9).
#[derive(Debug, Clone, Copy, Default)]
struct ClockWords {
    /// Words to come.
    left: u64,
    /// Whether the words to come make a sample.
    wanted: bool,
    /// Now low, now high, reference low.
    items: [u32; 3],
}

impl ClockWords {
    fn take(&mut self, word: u32, time: i64) -> Option<RealtimeSample> {
        if self.left == 0 {
            self.begin(u64::from(word));
            return None;
        }
        self.left -= 1;
        if !self.wanted {
            return None;
        }
        if let Some(item) = self.items.get_mut(self.left as usize) {
            *item = word;
        }
        (self.left == 0).then(|| self.finish(time))
    }

    fn begin(&mut self, word: u64) {
        let (opcode, value) = (bits(word, 0, 8), bits(word, 12, 32));
        self.wanted = opcode == CLOCK || opcode == CLOCK_LOW;
        self.left = match (opcode, value) {
            (CLOCK, 0) => 3,
            (CLOCK_LOW, 0) => 1,
            (_, count) => count,
        };
        if opcode == CLOCK_LOW {
            self.items[2] = self.items[0];
        }
    }

    fn finish(&mut self, time: i64) -> RealtimeSample {
        let [low, high, reference] = &mut self.items;
        if low < reference {
            *high = high.wrapping_add(1);
        }
        let realtime_clock = u64::from(*high) << 32 | u64::from(*low);
        RealtimeSample { shader_clock: time, realtime_clock, reserved: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::payload::header;
    use super::*;

    const QUEUE: Queue = Queue::new(0, 0);

    fn feed(user: &mut UserData, code: &mut CodeObjects, words: &[u32]) -> Vec<Word> {
        words
            .iter()
            .map(|&word| user.marker_word(word, QUEUE, code))
            .filter(|&word| word != Word::Nothing)
            .collect()
    }

    #[test]
    fn a_load_needs_the_switch_word_first() {
        let (mut user, mut code) = (UserData::default(), CodeObjects::default());
        let load = [header(1), 64, header(2), 4096, header(5), 9, header(0), 0];
        assert_eq!(feed(&mut user, &mut code, &load), []);
        assert_eq!(feed(&mut user, &mut code, &[SWITCH_ON]), []);
        let loaded = Word::Loaded { id: 9, address: 4096, size: 64 };
        assert_eq!(feed(&mut user, &mut code, &load), [loaded]);
        assert_eq!(feed(&mut user, &mut code, &load), [], "active already");
        assert_eq!(feed(&mut user, &mut code, &[header(0), 1]), [Word::Unloaded { id: 9 }]);
    }

    #[test]
    fn type_seven_takes_no_payload_and_eight_swallows_one() {
        let (mut user, mut code) = (UserData::default(), CodeObjects::default());
        let words = [SWITCH_ON, header(7), 6 | 1 << 8 | 50 << 12, header(8), 6 | 1 << 8 | 99 << 12];
        assert_eq!(feed(&mut user, &mut code, &words), [Word::Interval]);
        assert_eq!(user.counter_interval, 50);
    }

    #[test]
    fn the_short_clock_sample_carries_over_a_wrapped_low_half() {
        let (mut user, mut code) = (UserData::default(), CodeObjects::default());
        feed(&mut user, &mut code, &[SWITCH_ON]);
        let samples: Vec<_> = [5, 0, 2, 0xffff_fff0, 7, 0x10]
            .iter()
            .filter_map(|&word| user.clock_word(word, 8))
            .map(|sample| sample.realtime_clock)
            .collect();
        assert_eq!(samples, [0x2_ffff_fff0, 0x3_0000_0010]);
    }
}
