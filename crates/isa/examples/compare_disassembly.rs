//! Compares linear decoding of code objects with LLVM's disassembler: length, class and name of every instruction.
//!
//! `compare_disassembly "llvm-objdump [ARGUMENT]..." FILE...`
//!
//! Files are AMD GPU ELF files, such as those that `clang-offload-bundler` takes out of a ROCm library. Prints one row
//! of figures per target and the first differences; exits with failure if lengths or classes differ.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, bail};
use wavescope_isa::{CodeObject, InstructionClass, Instructions, Target, decode};

/// Differences shown per run; the rest is only counted.
const SHOWN: u64 = 20;

/// What was found for one target.
#[derive(Default)]
struct Figures {
    files: u64,
    instructions: u64,
    /// Words that LLVM takes for no instruction.
    refused: u64,
    lengths: u64,
    classes: u64,
    names: u64,
    /// LLVM names it, our tables do not.
    unnamed: u64,
}

fn main() -> Result<ExitCode> {
    let mut arguments = std::env::args().skip(1);
    let objdump = arguments.next().context("usage: compare_disassembly \"llvm-objdump ...\" FILE...")?;
    let mut totals: BTreeMap<Target, Figures> = BTreeMap::new();
    let mut shown = 0;
    for file in arguments {
        let bytes = std::fs::read(&file).with_context(|| file.clone())?;
        let object = CodeObject::parse(&bytes).with_context(|| file.clone())?;
        let Ok(target) = object.target() else { continue };
        let figures = totals.entry(target).or_default();
        figures.files += 1;
        compare(&object, target, &listing(&objdump, &file)?, figures, &mut shown)?;
    }
    println!("target           files  instructions  refused  length  class  name  unnamed");
    for (target, figures) in &totals {
        let Figures { files, instructions, refused, lengths, classes, names, unnamed } = figures;
        println!(
            "{:16} {files:5}  {instructions:12}  {refused:7}  {lengths:6}  {classes:5}  {names:4}  {unnamed:7}",
            target.name()
        );
    }
    let wrong = totals.values().any(|figures| figures.lengths + figures.classes > 0);
    Ok(if wrong { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// One line of LLVM's listing: address, size, text.
struct Line {
    vaddr: u64,
    size: usize,
    text: String,
}

/// Lines look like `\ts_nop 0   // 000000001600: BF800000`.
fn listing(objdump: &str, file: &str) -> Result<Vec<Line>> {
    let mut words = objdump.split_whitespace();
    let program = words.next().context("no disassembler given")?;
    let mut child =
        Command::new(program).args(words).args(["-d", "-z", file]).stdout(Stdio::piped()).spawn()?;
    let output = child.stdout.take().context("no output")?;
    let mut lines = Vec::new();
    for line in BufReader::new(output).lines() {
        let line = line?;
        let Some((text, raw)) = line.rsplit_once("//") else { continue };
        let Some((address, code)) = raw.split_once(':') else { continue };
        let Ok(vaddr) = u64::from_str_radix(address.trim(), 16) else { continue };
        // Branches have their target's symbol behind the code.
        let size =
            4 * code.split_whitespace().take_while(|word| u32::from_str_radix(word, 16).is_ok()).count();
        lines.push(Line { vaddr, size, text: text.trim().to_owned() });
    }
    if !child.wait()?.success() {
        bail!("{objdump} failed on {file}");
    }
    Ok(lines)
}

fn compare(
    object: &CodeObject<'_>,
    target: Target,
    listing: &[Line],
    figures: &mut Figures,
    shown: &mut u64,
) -> Result<()> {
    let boundaries: BTreeMap<u64, &Line> = listing.iter().map(|line| (line.vaddr, line)).collect();
    for code in object.code() {
        // Linear: where our lengths alone lead. Each place must be one where LLVM begins an instruction too.
        for (offset, _) in Instructions::new(target, code.bytes) {
            let vaddr = code.vaddr + offset as u64;
            if !boundaries.contains_key(&vaddr) {
                figures.lengths += 1;
                show(shown, || {
                    format!("{target} {vaddr:#x}: linear decoding arrives where LLVM begins nothing")
                });
            }
        }
    }
    for line in listing {
        let bytes = object.bytes_at(line.vaddr).context("LLVM lists what is not loaded")?;
        if line.text.is_empty() || line.text.starts_with('.') {
            figures.refused += 1;
            continue;
        }
        figures.instructions += 1;
        let Ok(found) = decode(target, bytes) else {
            figures.lengths += 1;
            show(shown, || format!("{target} {:#x}: {}: not decoded", line.vaddr, line.text));
            continue;
        };
        let expected = InstructionClass::of_text(target.gfxip(), &line.text);
        let name = bare(&line.text);
        figures.lengths += u64::from(found.size() != line.size);
        figures.classes += u64::from(found.class() != expected);
        figures.unnamed += u64::from(!found.is_named());
        figures.names += u64::from(found.is_named() && found.mnemonic() != name);
        if found.size() != line.size || found.class() != expected || found.mnemonic() != name {
            let (size, class, mnemonic) = (found.size(), found.class(), found.mnemonic());
            show(shown, || {
                let theirs = format!("{} bytes {expected:?} {}", line.size, line.text);
                format!("{target} {:#x}: {size} bytes {class:?} {mnemonic}; LLVM: {theirs}", line.vaddr)
            });
        }
    }
    Ok(())
}

fn show(shown: &mut u64, text: impl FnOnce() -> String) {
    *shown += 1;
    if *shown <= SHOWN {
        println!("{}", text());
    }
}

/// Mnemonic without the suffixes that say the encoding.
fn bare(text: &str) -> &str {
    let name = text.split_whitespace().next().unwrap_or("");
    let suffixes = ["_e64_dpp", "_e32", "_e64", "_dpp", "_sdwa"];
    suffixes.into_iter().find_map(|suffix| name.strip_suffix(suffix)).unwrap_or(name)
}
