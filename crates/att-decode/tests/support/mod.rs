#![expect(dead_code, reason = "each test file uses its share")]
//! Finds golden sets: those beside the repository where they exist, the copies in `tests/data` always.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde_json::Value;
use wavescope_att_decode::jsonl::JsonLines;
use wavescope_att_decode::{Pc, ProgramLine};

/// One folder of chunks with what a decoder makes of them.
pub struct Set {
    pub folder: PathBuf,
    pub name: String,
}

/// All sets at hand that have the named file (also gzipped).
pub fn sets_with(file: &str) -> Vec<Set> {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    let beside = manifest.join("../../../shared/fixtures/sqtt");
    if !beside.is_dir() {
        println!("NOT RUN: golden sets beside the repository, {} is absent", beside.display());
    }
    let mut sets = Vec::new();
    for root in [beside, manifest.join("tests/data")] {
        for family in folders(&root) {
            for folder in folders(&family) {
                if path_of(&folder, file).is_some() {
                    let name = folder.strip_prefix(&root).unwrap().display().to_string();
                    sets.push(Set { folder, name });
                }
            }
        }
    }
    assert!(!sets.is_empty(), "not even the sets in tests/data were found");
    sets
}

fn folders(root: &Path) -> Vec<PathBuf> {
    let mut found: Vec<_> = std::fs::read_dir(root)
        .into_iter()
        .flatten()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .collect();
    found.sort();
    found
}

fn path_of(folder: &Path, file: &str) -> Option<PathBuf> {
    [folder.join(file), folder.join(format!("{file}.gz"))].into_iter().find(|path| path.is_file())
}

impl Set {
    /// Text of a file of the set, gunzipped if need be.
    pub fn text(&self, file: &str) -> Option<String> {
        let path = path_of(&self.folder, file)?;
        let mut text = String::new();
        let raw = File::open(&path).unwrap();
        if path.extension().is_some_and(|ext| ext == "gz") {
            flate2::read::MultiGzDecoder::new(raw).read_to_string(&mut text).unwrap();
        } else {
            { raw }.read_to_string(&mut text).unwrap();
        }
        Some(text)
    }

    /// Bytes of a chunk.
    pub fn chunk(&self, file: &str) -> Vec<u8> {
        std::fs::read(self.folder.join(file)).unwrap()
    }
}

/// A chunk of a set as `meta.json` describes it.
pub struct Chunk {
    pub file: String,
    pub shader_engine: u32,
    pub bytes: Vec<u8>,
}

/// A kernel of a set: where it is loaded, and its lines of disassembly by offset.
pub struct Kernel {
    pub load_address: u64,
    pub load_size: u64,
    pub code_object_id: u64,
    pub lines: HashMap<u64, (u32, String)>,
}

impl Set {
    fn meta(&self) -> Value {
        serde_json::from_str(&self.text("meta.json").unwrap()).unwrap()
    }

    /// All chunks, in the order of the golden.
    pub fn chunks(&self) -> Vec<Chunk> {
        let meta = self.meta();
        let chunks = meta["chunks"].as_array().unwrap().iter().map(|chunk| {
            let file = chunk["file"].as_str().unwrap().to_owned();
            Chunk { bytes: self.chunk(&file), shader_engine: chunk["se"].as_u64().unwrap() as u32, file }
        });
        chunks.collect()
    }

    /// All kernels.
    pub fn kernels(&self) -> Vec<Kernel> {
        let meta = self.meta();
        let kernels = meta["kernels"].as_array().unwrap().iter().map(|kernel| Kernel {
            load_address: kernel["load_address"].as_u64().unwrap(),
            load_size: kernel["load_size"].as_u64().unwrap(),
            code_object_id: kernel["code_object_id"].as_u64().unwrap_or(1),
            lines: self.lines_of(kernel["isa"].as_str().unwrap()),
        });
        kernels.collect()
    }

    fn lines_of(&self, file: &str) -> HashMap<u64, (u32, String)> {
        let text = self.text(file).unwrap();
        let lines = text.lines().map(|line| {
            let mut columns = line.splitn(3, '\t');
            let mut number = || columns.next().unwrap().parse::<u64>().unwrap();
            let (offset, size) = (number(), number() as u32);
            (offset, (size, columns.next().unwrap_or_default().to_owned()))
        });
        lines.collect()
    }
}

/// Looks instructions up the way the goldens were made: absolute addresses by load address, others by id.
pub fn lookup(kernels: &[Kernel], pc: Pc, gfxip: u32) -> Option<ProgramLine> {
    let (kernel, offset) = if pc.code_object_id == 0 {
        let holds = |kernel: &&Kernel| {
            pc.address.checked_sub(kernel.load_address).is_some_and(|offset| offset < kernel.load_size)
        };
        let kernel = kernels.iter().find(holds)?;
        (kernel, pc.address - kernel.load_address)
    } else {
        let kernel = kernels.iter().find(|kernel| kernel.code_object_id == pc.code_object_id)?;
        (kernel, pc.address)
    };
    let (size, text) = kernel.lines.get(&offset)?;
    Some(ProgramLine::from_text(gfxip, *size, text))
}

/// Records of a set's chunks as lines, each chunk decoded by itself.
pub fn decode(set: &Set, mut decode_chunk: impl FnMut(&Chunk, &mut JsonLines<Vec<u8>>)) -> String {
    let mut lines = JsonLines::new(Vec::new());
    for chunk in set.chunks() {
        lines.chunk(&chunk.file, chunk.shader_engine, chunk.bytes.len());
        decode_chunk(&chunk, &mut lines);
    }
    String::from_utf8(lines.finish().unwrap()).unwrap()
}

/// The first line that differs, with what is around it.
pub fn first_difference(expected: &str, found: &str) -> Option<String> {
    let (mut expected, mut found) = (expected.lines(), found.lines());
    for number in 1.. {
        match (expected.next(), found.next()) {
            (None, None) => return None,
            (left, right) if left == right => {}
            (left, right) => {
                return Some(format!("line {number}\n  expected {}\n  found    {}", shown(left), shown(right)));
            }
        }
    }
    None
}

fn shown(line: Option<&str>) -> &str {
    let line = line.unwrap_or("nothing");
    line.get(..3000).unwrap_or(line)
}
