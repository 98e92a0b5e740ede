//! Instructions from code objects, decoded by our own tables.

use std::collections::HashMap;
use std::sync::Arc;

use wavescope_isa::{CodeObject, Error as IsaError, Target, decode};

use crate::marker::FunctionMap;
use crate::record::Pc;
use crate::source::{InstructionSource, ProgramLine};

/// Code objects as a caller knows them: each at the address where it was loaded, or under an id, or both.
///
/// A program counter with id 0 is an absolute address and found by load address. One with an id is found by that id;
/// if the caller gave none, by the address that the stream announced for it. Where several objects were loaded at one
/// address one after the other, the stream's loads there take them in the order in which they were added.
///
/// ```no_run
/// use wavescope_att_decode::{CodeObjects, Decoder, Options, jsonl::JsonLines};
/// let mut code = CodeObjects::new();
/// code.add(&std::fs::read("kernel.co")?, Some(0x2000_0000_0000), None)?;
/// let mut lines = JsonLines::new(std::io::stdout().lock());
/// let chunk = std::fs::read("se0.sqtt")?;
/// let result = Decoder::new(code, Options::default()).decode(&chunk, &mut lines);
/// lines.status(result);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct CodeObjects {
    objects: Vec<Object>,
    by_id: HashMap<u64, usize>,
    /// How many loads the stream announced at an address.
    loads: HashMap<u64, usize>,
    /// Target of files that do not say it.
    assumed: Option<Target>,
}

/// The code of one object.
#[derive(Debug, Clone)]
struct Object {
    address: Option<u64>,
    size: u64,
    /// `None` where the file does not say it.
    target: Option<Target>,
    /// Virtual address and bytes of each run of code.
    code: Vec<(u64, Vec<u8>)>,
    map: Option<Arc<FunctionMap>>,
}

impl CodeObjects {
    /// None yet.
    pub fn new() -> Self {
        CodeObjects::default()
    }

    /// Takes files that do not say their target, or name one that nothing is known of, for ones of this target.
    /// Generated code objects may leave it out.
    #[must_use]
    pub fn assuming(mut self, target: Target) -> Self {
        self.assumed = Some(target);
        self
    }

    /// Adds an ELF file, with or without program or section headers.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or was made for a chip that nothing is known of and none is assumed.
    pub fn add(&mut self, elf: &[u8], address: Option<u64>, id: Option<u64>) -> Result<(), IsaError> {
        let object = CodeObject::parse(elf)?;
        let target = match object.target() {
            Err(IsaError::UnknownMachine { machine }) if machine == 0 || self.assumed.is_some() => {
                self.assumed
            }
            target => Some(target?),
        };
        // Behind the code of a section lies padding that would read as instructions.
        let runs = if object.code().is_empty() { object.segments() } else { object.code() };
        let code = runs.iter().map(|run| (run.vaddr, run.bytes.to_vec())).collect();
        if let Some(id) = id {
            self.by_id.insert(id, self.objects.len());
        }
        let map = FunctionMap::of_code_object(elf).map(Arc::new);
        self.objects.push(Object { address, size: object.load_size(), target, code, map });
        Ok(())
    }

    /// The object that an absolute address lies in, and the offset in it. Of several, the one added last.
    fn holding(&self, address: u64) -> Option<(&Object, u64)> {
        self.objects.iter().rev().find_map(|object| {
            let offset = address.checked_sub(object.address?)?;
            (offset < object.size).then_some((object, offset))
        })
    }

    /// The object of an id.
    fn object(&self, id: u64) -> Option<&Object> {
        let known = self.by_id.get(&id).and_then(|&index| self.objects.get(index));
        known.or_else(|| self.guessed(id))
    }

    /// The object of an id that nobody gave: the one there is, or the one at that place of the list.
    fn guessed(&self, id: u64) -> Option<&Object> {
        match &self.objects[..] {
            [only] => Some(only),
            objects => objects.get(usize::try_from(id).ok()?.checked_sub(1)?),
        }
    }
}

impl Object {
    fn line(&self, vaddr: u64, gfxip: u32) -> Option<ProgramLine> {
        let bytes = self.code.iter().find_map(|(start, bytes)| {
            let within = usize::try_from(vaddr.checked_sub(*start)?).ok()?;
            bytes.get(within..).filter(|bytes| !bytes.is_empty())
        })?;
        let target = self.target.unwrap_or_else(|| usual_target(gfxip));
        decode(target, bytes).ok().map(ProgramLine::from_instruction)
    }
}

/// The target of code that does not say it.
const fn usual_target(gfxip: u32) -> Target {
    match gfxip {
        9 => Target::Gfx950,
        10 => Target::Gfx1030,
        11 => Target::Gfx1100,
        _ => Target::Gfx1201,
    }
}

impl InstructionSource for CodeObjects {
    fn instruction(&mut self, pc: Pc, gfxip: u32) -> Option<ProgramLine> {
        let (object, vaddr) = match pc.code_object_id {
            0 => self.holding(pc.address)?,
            id => (self.object(id)?, pc.address),
        };
        object.line(vaddr, gfxip)
    }

    fn has_function_maps(&self) -> bool {
        self.objects.iter().any(|object| object.map.is_some())
    }

    fn function_map(&mut self, code_object_id: u64) -> Option<Arc<FunctionMap>> {
        self.object(code_object_id)?.map.clone()
    }

    fn code_object_loaded(&mut self, id: u64, address: u64, _size: u64) {
        if self.by_id.contains_key(&id) {
            return;
        }
        let mut there = (0..self.objects.len()).filter(|&index| self.objects[index].address == Some(address));
        let count = there.clone().count();
        let load = self.loads.entry(address).or_insert(0);
        if let Some(index) = there.nth((*load).min(count.saturating_sub(1))) {
            self.by_id.insert(id, index);
        }
        *load += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(address: u64, first: u32) -> Object {
        let code = vec![(0, first.to_le_bytes().to_vec())];
        Object { address: Some(address), size: 4, target: Some(Target::Gfx1100), code, map: None }
    }

    const S_NOP: u32 = 0xbf80_0000;
    const S_BRANCH: u32 = 0xbfa0_0002;

    fn branch(code: &mut CodeObjects, id: u64) -> Option<i64> {
        code.instruction(Pc { address: 0, code_object_id: id }, 11).map(|line| line.branch)
    }

    #[test]
    fn a_reused_address_takes_its_objects_in_order() {
        let objects = vec![object(4096, S_NOP), object(4096, S_BRANCH)];
        let mut code = CodeObjects { objects, ..CodeObjects::new() };
        code.code_object_loaded(70, 4096, 4);
        code.code_object_loaded(70, 4096, 4);
        code.code_object_loaded(71, 4096, 4);
        assert_eq!(branch(&mut code, 70), Some(4));
        assert_eq!(branch(&mut code, 71), Some(12));
        assert_eq!(branch(&mut code, 72), None);
    }

    /// An ELF file with one section of code and no program headers.
    fn elf(machine: u32, code: &[u8]) -> Vec<u8> {
        let mut elf = vec![0; 64];
        elf[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
        elf[16] = 3; // ET_DYN
        elf[18] = 224; // EM_AMDGPU
        elf[40..48].copy_from_slice(&(64 + code.len() as u64).to_le_bytes()); // e_shoff
        elf[48..52].copy_from_slice(&machine.to_le_bytes()); // e_flags
        elf[52] = 64; // e_ehsize
        elf[58] = 64; // e_shentsize
        elf[60] = 2; // e_shnum
        elf.extend_from_slice(code);
        elf.extend_from_slice(&[0; 64]);
        let mut text = [0; 64];
        text[4] = 1; // SHT_PROGBITS
        text[8] = 6; // SHF_ALLOC | SHF_EXECINSTR
        text[24] = 64; // sh_offset
        text[32] = code.len() as u8; // sh_size
        elf.extend_from_slice(&text);
        elf
    }

    #[test]
    fn code_of_no_known_chip_is_that_of_the_assumed_one() {
        // s_mov_b64 s[0:1] with a constant of 64 bits behind it, which only gfx1250 has.
        let code = [0xfe, 0x01, 0x80, 0xbe, 1, 2, 3, 4, 5, 6, 7, 8];
        let size = |machine, assumed: Option<Target>| {
            let mut code_objects = CodeObjects { assumed, ..CodeObjects::new() };
            code_objects.add(&elf(machine, &code), Some(4096), None)?;
            let line = code_objects.instruction(Pc { address: 4096, code_object_id: 0 }, 12);
            Ok::<_, IsaError>(line.map(|line| line.size))
        };
        assert_eq!(size(0, Some(Target::Gfx1250)), Ok(Some(12)));
        assert_eq!(size(0, None), Ok(Some(4)), "taken for gfx1201");
        assert_eq!(size(Target::Gfx1201.machine(), Some(Target::Gfx1250)), Ok(Some(4)), "it says its chip");
        assert_eq!(size(0xfe, Some(Target::Gfx1250)), Ok(Some(12)));
        assert!(size(0xfe, None).is_err());
    }

    #[test]
    fn an_absolute_address_is_found_in_the_object_added_last() {
        let objects = vec![object(4096, S_NOP), object(4096, S_BRANCH)];
        let mut code = CodeObjects { objects, ..CodeObjects::new() };
        let at = |code: &mut CodeObjects, address| {
            code.instruction(Pc { address, code_object_id: 0 }, 11).map(|line| line.branch)
        };
        assert_eq!(at(&mut code, 4096), Some(12));
        assert_eq!(at(&mut code, 4100), None);
        assert_eq!(at(&mut code, 0), None);
    }
}
