//! The map from marker ids to names, as the compiler writes it to a section of the code object.

use std::collections::HashMap;

use crate::record::MarkerKind;

/// Name of the section.
const SECTION: &[u8] = b".sqtt_funcmap";

/// What an id stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MapEntry {
    /// Function, user scope or point.
    pub kind: MarkerKind,
    /// Its name.
    pub name: String,
    /// Where it stands in the source, empty where the map does not say.
    pub location: String,
}

/// Ids and what they stand for, of one code object.
///
/// ```
/// use wavescope_att_decode::FunctionMap;
/// let map = FunctionMap::parse("F:7:reduce@sum.hip:12\nR:7:extra_payload_count=2\n");
/// assert_eq!(map.get(7).map(|entry| entry.name.as_str()), Some("reduce"));
/// assert_eq!(map.payload_words(7), 2);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FunctionMap {
    entries: HashMap<u32, MapEntry>,
    payload_words: HashMap<u32, u32>,
    clock_bits: u32,
}

impl FunctionMap {
    /// Reads the lines of the section. Lines that say nothing known are passed over; of two lines for one id the later
    /// one counts.
    pub fn parse(text: &str) -> Self {
        let mut map = FunctionMap::default();
        for line in text.lines() {
            let Some((kind, rest)) = line.split_once(':') else { continue };
            match kind {
                "M" => map.clock_bits = clock_bits(rest).unwrap_or(map.clock_bits),
                "R" => map.add_payload(rest),
                "F" => map.add(MarkerKind::Function, rest),
                "U" => map.add(MarkerKind::UserScope, rest),
                "P" => map.add(MarkerKind::Point, rest),
                _ => {}
            }
        }
        map
    }

    /// The map of a code object, if it has one.
    pub fn of_code_object(elf: &[u8]) -> Option<Self> {
        let bytes = section(elf, SECTION)?;
        Some(FunctionMap::parse(&String::from_utf8_lossy(bytes)))
    }

    /// What an id stands for.
    pub fn get(&self, id: u32) -> Option<&MapEntry> {
        self.entries.get(&id)
    }

    /// Words that follow a marker of this id.
    pub fn payload_words(&self, id: u32) -> u32 {
        self.payload_words.get(&id).copied().unwrap_or(0)
    }

    /// Bits of a marker word that hold a clock, 0 for none.
    pub(super) fn clock_bits(&self) -> u32 {
        self.clock_bits
    }

    fn add(&mut self, kind: MarkerKind, rest: &str) {
        let Some((id, name)) = rest.split_once(':') else { return };
        let Some(id) = number(id) else { return };
        let (name, location) = name.split_once('@').unwrap_or((name, ""));
        let entry = MapEntry { kind, name: name.to_owned(), location: location.to_owned() };
        self.entries.insert(id, entry);
    }

    fn add_payload(&mut self, rest: &str) {
        let parsed = rest.split_once(':').and_then(|(id, words)| {
            Some((number(id)?, number(words.strip_prefix("extra_payload_count=")?)?))
        });
        if let Some((id, words)) = parsed {
            self.payload_words.insert(id, words);
        }
    }
}

/// Clock bits of a `shader_clock_bits=B;shader_clock_shift=S` line, if they fit a word.
fn clock_bits(rest: &str) -> Option<u32> {
    let (bits, shift) = rest.split_once(';')?;
    let bits = number(bits.strip_prefix("shader_clock_bits=")?)?;
    let shift = number(shift.strip_prefix("shader_clock_shift=")?)?;
    let fits = (1..=29).contains(&bits) && shift <= 32 && bits <= 32 - shift;
    Some(if fits { bits } else { 0 })
}

fn number(text: &str) -> Option<u32> {
    text.trim().parse().ok()
}

/// Contents of a section of a 64-bit little-endian ELF file.
fn section<'a>(elf: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let word = |at: usize| Some(u64::from_le_bytes(*elf.get(at..)?.first_chunk::<8>()?));
    let half = |at: usize| Some(usize::from(u16::from_le_bytes(*elf.get(at..)?.first_chunk::<2>()?)));
    if !elf.starts_with(b"\x7fELF") {
        return None;
    }
    let (table, size, count, names) = (word(0x28)?, half(0x3a)?, half(0x3c)?, half(0x3e)?);
    let header = |index: usize| usize::try_from(table).ok()?.checked_add(index.checked_mul(size.max(64))?);
    let contents = |index: usize| {
        let header = elf.get(header(index)?..)?.first_chunk::<64>()?;
        let field = |at: usize| usize::try_from(u64::from_le_bytes(*header.get(at..)?.first_chunk()?)).ok();
        let (offset, len) = (field(0x18)?, field(0x20)?);
        elf.get(offset..offset.checked_add(len)?)
    };
    let names = contents(names)?;
    (0..count).find_map(|index| {
        let at = header(index)?;
        let text = names.get(usize::try_from(word(at)? & 0xffff_ffff).ok()?..)?;
        let is_it = text.strip_prefix(name).is_some_and(|rest| rest.first() == Some(&0));
        if is_it { contents(index) } else { None }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_lines_win_and_strange_ones_are_passed_over() {
        let text = "W:32\nF:1:a\nF:1:b@x.hip:3\nP:two:c\nnonsense\nU:4:scope\nK:kernel@y\n";
        let map = FunctionMap::parse(text);
        let entry = map.get(1).unwrap();
        assert_eq!((entry.name.as_str(), entry.location.as_str()), ("b", "x.hip:3"));
        assert_eq!(map.get(4).unwrap().kind, MarkerKind::UserScope);
        assert_eq!(map.entries.len(), 2);
    }

    #[test]
    fn clock_bits_must_fit_a_word() {
        let bits = |line: &str| FunctionMap::parse(line).clock_bits;
        assert_eq!(bits("M:shader_clock_bits=20;shader_clock_shift=4"), 20);
        assert_eq!(bits("M:shader_clock_bits=30;shader_clock_shift=0"), 0);
        assert_eq!(bits("M:shader_clock_bits=20;shader_clock_shift=13"), 0);
    }

    #[test]
    fn the_section_is_found_by_name() {
        let names = b"\0.text\0.sqtt_funcmap\0";
        let contents = b"P:5:here";
        let mut elf = vec![0; 64];
        elf[..4].copy_from_slice(b"\x7fELF");
        let names_at = elf.len() as u64;
        elf.extend_from_slice(names);
        let contents_at = elf.len() as u64;
        elf.extend_from_slice(contents);
        let table = elf.len() as u64;
        for (name, offset, len) in [(0u32, names_at, names.len()), (7, contents_at, contents.len())] {
            let mut header = [0; 64];
            header[..4].copy_from_slice(&name.to_le_bytes());
            header[0x18..0x20].copy_from_slice(&offset.to_le_bytes());
            header[0x20..0x28].copy_from_slice(&(len as u64).to_le_bytes());
            elf.extend_from_slice(&header);
        }
        elf[0x28..0x30].copy_from_slice(&table.to_le_bytes());
        elf[0x3a..0x3c].copy_from_slice(&64u16.to_le_bytes());
        elf[0x3c..0x3e].copy_from_slice(&2u16.to_le_bytes());
        assert_eq!(FunctionMap::of_code_object(&elf).unwrap().get(5).unwrap().name, "here");
        for cut in 0..elf.len() {
            let _ = FunctionMap::of_code_object(&elf[..cut]);
        }
        // The table at the very end of all addresses (found by fuzzing).
        for far in [u64::MAX, u64::MAX - 0x20, u64::MAX - 127] {
            elf[0x28..0x30].copy_from_slice(&far.to_le_bytes());
            assert!(FunctionMap::of_code_object(&elf).is_none());
        }
    }
}
