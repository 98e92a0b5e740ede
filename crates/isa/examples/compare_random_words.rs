//! Compares decoding with LLVM's disassembler on random instruction words: length, class and name wherever LLVM takes
//! the words for an instruction.
//!
//! `compare_random_words "llvm-mc" "llvm-objdump" TARGET WORDS SEED [GOLDEN]`
//!
//! Operand fields are drawn so that literals, DPP and SDWA come often. With GOLDEN, the first instruction of each name
//! and length goes to that file, in the form that `tests/llvm` holds.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};
use wavescope_isa::{InstructionClass, Target, decode};

/// Each try starts at a multiple of this, with `s_nop` behind it.
const SLOT: usize = 32;
/// `s_nop 0` on every target.
const NOP: [u8; 4] = 0xbf80_0000_u32.to_le_bytes();
/// Differences shown; the rest is only counted.
const SHOWN: usize = 40;

fn main() -> Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [mc, objdump, target, words, seed, golden @ ..] = arguments.as_slice() else {
        bail!("usage: compare_random_words \"llvm-mc\" \"llvm-objdump\" TARGET WORDS SEED [GOLDEN]");
    };
    let target: Target = target.parse()?;
    let mut random = Random(seed.parse()?);
    let tries: Vec<[u8; 20]> = (0..words.parse::<usize>()?).map(|_| random.instruction()).collect();
    let tools = Tools { mc, objdump, target };

    let (mut compared, mut differences) = (0, Vec::new());
    let mut firsts: BTreeMap<(String, usize), String> = BTreeMap::new();
    for batch in tries.chunks(4096) {
        for (bytes, theirs) in batch.iter().zip(tools.disassemble(batch)?) {
            let Some((size, text)) = theirs else { continue };
            if is_lenient(target, bytes, size, &text) {
                continue;
            }
            compared += 1;
            if let Some(difference) = compare(target, bytes, size, &text) {
                differences.push(difference);
            } else {
                let hex = bytes[..size].iter().fold(String::new(), |mut hex, byte| {
                    let _ = write!(hex, "{byte:02x}");
                    hex
                });
                firsts.entry((bare(&text).to_owned(), size)).or_insert(format!("{hex}\t{text}\n"));
            }
        }
    }
    for difference in differences.iter().take(SHOWN) {
        println!("{difference}");
    }
    println!(
        "{target}: {compared} of {} taken by LLVM, {} names and lengths, {} differences",
        tries.len(),
        firsts.len(),
        differences.len()
    );
    if let [golden] = golden {
        std::fs::write(golden, firsts.into_values().collect::<String>())?;
    }
    Ok(if differences.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Whether LLVM's disassembler takes what its assembler and the hardware refuse, or prints operands into the name.
fn is_lenient(target: Target, bytes: &[u8], size: usize, text: &str) -> bool {
    let top = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) >> 16;
    // Registers of a wrong class, literals as a destination.
    let invalid = text.contains("Invalid");
    // No generation before gfx10 has literals in the 64-bit format: the assembler says so.
    let literal = target.gfxip() == 9 && top >> 10 == 0b11_0100 && size == 12;
    // Buffer instructions take no literal for an offset.
    let offset = target.gfxip() < 12 && matches!(top >> 10, 0b11_1000 | 0b11_1010) && size == 12;
    // The mixed-precision instructions of gfx9, where later generations have nothing or images.
    let mixed = target.gfxip() > 9 && matches!(top & 0xff80, 0xd380) && text.starts_with("v_fma_mix");
    // Signed forms of the mixed-sign dot products, told from operands.
    let dot = text.starts_with("v_dot4_i32_i8") || text.starts_with("v_dot8_i32_i4");
    // Pixel shaders only: the letters of the target complete a prefix of the stitcher's.
    invalid
        || literal
        || offset
        || mixed
        || dot && target.gfxip() > 10
        || text.starts_with("exp dual_src_blend")
}

/// What differs, or None.
fn compare(target: Target, bytes: &[u8], size: usize, text: &str) -> Option<String> {
    let expected = InstructionClass::of_text(target.gfxip(), text);
    let place = format!("{target} {:x?}: LLVM {size} bytes {expected:?} {text}", &bytes[..size]);
    let Ok(found) = decode(target, bytes) else { return Some(format!("{place}; not decoded")) };
    let same = (found.size(), found.class(), found.mnemonic()) == (size, expected, bare(text));
    (!same).then(|| format!("{place}; found {} bytes {:?} {}", found.size(), found.class(), found.mnemonic()))
}

/// Mnemonic without the suffixes that say the encoding.
fn bare(text: &str) -> &str {
    let name = text.split_whitespace().next().unwrap_or("");
    let suffixes = ["_e64_dpp", "_e32", "_e64", "_dpp", "_sdwa"];
    suffixes.into_iter().find_map(|suffix| name.strip_suffix(suffix)).unwrap_or(name)
}

/// Marsaglia's 64-bit xorshift.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn one_in_four(&mut self) -> bool {
        self.next().is_multiple_of(4)
    }

    /// 20 bytes that are an instruction more often than chance: few bits set in the operands, sources that mean
    /// something.
    fn instruction(&mut self) -> [u8; 20] {
        const CODES: [u64; 10] = [255, 254, 250, 249, 233, 234, 256, 257, 128, 0];
        let mut low = self.next();
        for _ in 0..self.next() % 4 {
            low &= self.next() | 0xffff_0000;
        }
        // Most encodings begin with two ones.
        if !self.one_in_four() {
            low |= 0xc000_0000;
        }
        for (shift, width) in [(0, 9), (32, 9), (41, 9), (50, 9), (0, 8), (8, 8)] {
            if self.one_in_four() {
                let code = CODES[(self.next() % CODES.len() as u64) as usize] & ((1 << width) - 1);
                low = low & !(((1 << width) - 1) << shift) | code << shift;
            }
        }
        let mut bytes = [0; 20];
        bytes[..8].copy_from_slice(&low.to_le_bytes());
        let mask = self.next() & self.next();
        bytes[8..16].copy_from_slice(&(self.next() & mask).to_le_bytes());
        bytes[16..].copy_from_slice(&NOP);
        bytes
    }
}

/// Size and text of an instruction, None where LLVM refuses it.
type Found = Option<(usize, String)>;

/// LLVM's programs.
struct Tools<'a> {
    mc: &'a str,
    objdump: &'a str,
    target: Target,
}

impl Tools<'_> {
    /// What LLVM makes of each try. Where it crashes on one, that one counts as refused.
    fn disassemble(&self, tries: &[[u8; 20]]) -> Result<Vec<Found>> {
        if let Some(found) = self.run(tries)? {
            return Ok(found);
        }
        if tries.len() == 1 {
            return Ok(vec![None]);
        }
        let mut found = Vec::new();
        for part in tries.chunks(tries.len().div_ceil(8)) {
            found.extend(self.disassemble(part)?);
        }
        Ok(found)
    }

    /// None when the disassembler crashed.
    fn run(&self, tries: &[[u8; 20]]) -> Result<Option<Vec<Found>>> {
        let folder = std::env::temp_dir().join(format!("compare-random-words-{}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        let [code, source, object] = ["code.bin", "code.s", "code.o"].map(|name| folder.join(name));
        std::fs::write(&code, tries.iter().flat_map(slot).collect::<Vec<u8>>())?;
        std::fs::write(&source, format!(".text\n.incbin \"{}\"\n", code.display()))?;
        let cpu = format!("-mcpu={}", self.target);
        let assembled = command(self.mc)?
            .args(["-triple=amdgcn-amd-amdhsa", &cpu, "-filetype=obj", "-o"])
            .args([&object, &source])
            .status()?;
        if !assembled.success() {
            bail!("{} failed for {}", self.mc, self.target);
        }
        let listed = self.list(&object, tries.len());
        std::fs::remove_dir_all(&folder)?;
        listed
    }

    fn list(&self, object: &Path, count: usize) -> Result<Option<Vec<Found>>> {
        let output = command(self.objdump)?.args(["-d", "-z"]).arg(object).output()?;
        if !output.status.success() {
            return Ok(None);
        }
        let mut found = vec![None; count];
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            let Some((text, raw)) = line.rsplit_once("//") else { continue };
            let Some((address, code)) = raw.split_once(':') else { continue };
            let Ok(address) = usize::from_str_radix(address.trim(), 16) else { continue };
            let words =
                code.split_whitespace().take_while(|word| u32::from_str_radix(word, 16).is_ok()).count();
            let text = text.trim();
            if address.is_multiple_of(SLOT) && !text.is_empty() && !text.starts_with('.') {
                found[address / SLOT] = Some((4 * words, text.to_owned()));
            }
        }
        Ok(Some(found))
    }
}

/// A try in its slot.
fn slot(bytes: &[u8; 20]) -> [u8; SLOT] {
    let mut slot = [0; SLOT];
    slot[..20].copy_from_slice(bytes);
    for nop in slot[20..].chunks_exact_mut(4) {
        nop.copy_from_slice(&NOP);
    }
    slot
}

/// A program with its first arguments.
fn command(line: &str) -> Result<Command> {
    let mut words = line.split_whitespace();
    let mut command = Command::new(words.next().context("no program given")?);
    command.args(words);
    Ok(command)
}
