//! Kind `sqtt-walk`: the software GPU's program walk against waves that ran on real chips.
//!
//! A case is the records of a set whose code objects were captured. Each wave whose instructions were traced is walked
//! from the entry that its registers gave; the walk's (PC, category) list must be the record's. A program that asks
//! about no branch is walked with nobody to ask; else the captured outcomes are handed in, and only those.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::Value;
use wavescope_isa::{CodeObject, Target};
use wavescope_software_gpu::walk::{self, Branch, End, Outcome as Does, Outcomes, Program};
use wavescope_sqtt_fixtures::{Kernel, Set};

use super::{Kind, Outcome, Role, Source, read_text};

/// The kind `sqtt-walk`.
pub(crate) struct SqttWalk;

/// Longest walk: the longest captured one has 546 instructions.
const LIMIT: u32 = 100_000;
/// Record categories of branches.
const JUMP: u64 = 7;
const NEXT: u64 = 8;

impl Kind for SqttWalk {
    fn name(&self) -> &'static str {
        "sqtt-walk"
    }

    fn role(&self, file: &Path) -> Role {
        let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let records = name == "golden.jsonl" || name == "golden.jsonl.gz";
        // Empty kernels and chunks without instruction detail leave nothing to walk.
        if records && has_code(file) && shows_instructions(file) { Role::Case } else { Role::Support }
    }

    fn check(&self, case: &Path) -> Result<Outcome> {
        let set = Set::in_folder(case.parent().map_or_else(PathBuf::new, Path::to_owned));
        let mut outcome = Outcome::default();
        let objects = objects(&set)?;
        let parsed: Vec<(&Kernel, CodeObject<'_>)> = objects
            .iter()
            .map(|(kernel, bytes)| Ok((kernel, CodeObject::parse(bytes)?)))
            .collect::<Result<_>>()?;
        let target: Target = text_of(&set.text("meta.json")?, "target")?.parse()?;
        for wave in waves(&read_text(case)?)? {
            wave.check(target, &parsed, &mut outcome)?;
        }
        Ok(outcome)
    }

    fn ci_sources(&self) -> Vec<Source> {
        vec![Source { shared: "fixtures/sqtt", copy: None }]
    }
}

fn has_code(records: &Path) -> bool {
    let entries = records.parent().and_then(|folder| std::fs::read_dir(folder).ok());
    entries
        .into_iter()
        .flatten()
        .flatten()
        .any(|entry| entry.path().extension().is_some_and(|end| end == "co"))
}

fn shows_instructions(records: &Path) -> bool {
    // What cannot be read is a case, so that it fails.
    read_text(records).and_then(|text| waves(&text)).map_or(true, |waves| !waves.is_empty())
}

/// The set's kernels with the bytes of their code objects.
fn objects(set: &Set) -> Result<Vec<(Kernel, Vec<u8>)>> {
    let mut objects = Vec::new();
    for kernel in set.kernels()? {
        let path = kernel.code_object.clone().context("a kernel without code object")?;
        let bytes = std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        objects.push((kernel, bytes));
    }
    Ok(objects)
}

fn text_of(json: &str, key: &str) -> Result<String> {
    let value: Value = serde_json::from_str(json)?;
    let text = value[key].as_str().or_else(|| value["arch"].as_str());
    Ok(text.with_context(|| format!("meta.json has no `{key}`"))?.to_owned())
}

/// A wave with traced instructions.
struct Wave {
    name: String,
    /// Address of its kernel's first instruction, from the registers.
    entry: u64,
    /// (PC, category) as recorded.
    traced: Vec<(u64, u64)>,
}

/// Where and when something began: CU, SIMD, slot, time.
type Place = [Option<u64>; 4];

/// Waves of all chunks that have instructions, with the entry of the occupancy record that begins them. The records
/// of a chunk stand in any order.
fn waves(text: &str) -> Result<Vec<Wave>> {
    let (mut found, mut chunk) = (Vec::new(), Vec::new());
    for line in text.lines() {
        let record: Value = serde_json::from_str(line)?;
        if record["rec"] == "chunk" {
            found.extend(waves_of(&chunk)?);
            chunk.clear();
        }
        chunk.push(record);
    }
    found.extend(waves_of(&chunk)?);
    Ok(found)
}

/// Waves of one chunk; its first record names it.
fn waves_of(records: &[Value]) -> Result<Vec<Wave>> {
    let place = |record: &Value, time: &str| -> Place {
        ["cu", "simd", "wave_id", time].map(|key| record[key].as_u64())
    };
    let is_start = |record: &&Value| record["rec"] == "occupancy" && record["start"] == 1;
    let starts: Vec<_> = records.iter().filter(is_start).map(|start| (place(start, "time"), start)).collect();
    let waves = records.iter().filter(|record| record["rec"] == "wave" && !traced(record).is_empty());
    let named = |record: &Value| {
        let at = place(record, "begin");
        let name = format!("{}, wave {at:?}", records[0]["file"].as_str().unwrap_or_default());
        let start = starts.iter().find(|(place, _)| *place == at).map(|(_, start)| &start["pc"][0]);
        let entry = start.and_then(Value::as_u64).with_context(|| format!("{name}: no start"))?;
        Ok(Wave { name, entry, traced: traced(record) })
    };
    waves.map(named).collect()
}

fn traced(record: &Value) -> Vec<(u64, u64)> {
    let list = record["insts"].as_array().into_iter().flatten();
    list.filter_map(|inst| Some((inst[4].as_u64()?, inst[0].as_u64()?))).collect()
}

impl Wave {
    fn check(
        &self,
        target: Target,
        objects: &[(&Kernel, CodeObject<'_>)],
        outcome: &mut Outcome,
    ) -> Result<()> {
        let holds = |kernel: &Kernel| {
            let offset = self.entry.checked_sub(kernel.load_address);
            offset.is_some_and(|offset| offset < kernel.load_size)
        };
        let Some((kernel, object)) = objects.iter().find(|(kernel, _)| holds(kernel)) else {
            bail!("{}: no code object at {:#x}", self.name, self.entry);
        };
        let code = (kernel.load_address, object);
        let path = self.walk(target, &code);
        outcome.compare(format_args!("{}: end", self.name), &End::Program, &path.end);
        let found: Vec<_> = path.traced().map(|(pc, category)| (pc, category as u64)).collect();
        outcome.compare(format_args!("{}: instructions", self.name), &self.traced.len(), &found.len());
        for (index, (expected, found)) in self.traced.iter().zip(&found).enumerate() {
            outcome.compare(format_args!("{}, instruction {index}", self.name), expected, found);
        }
        Ok(())
    }

    /// With nobody to ask if the code alone decides, else with the captured outcomes.
    fn walk(&self, target: Target, code: &dyn walk::Code) -> walk::Path {
        let mut program = Program::new(target);
        let alone = walk::walk(&mut program, code, self.entry, &mut Nobody, LIMIT);
        if alone.asked == 0 {
            return alone;
        }
        let mut captured = Captured(self.traced.iter());
        walk::walk(&mut program, code, self.entry, &mut captured, LIMIT)
    }
}

/// Knows nothing.
struct Nobody;

impl Outcomes for Nobody {
    fn outcome(&mut self, _branch: &Branch) -> Does {
        Does::Unknown
    }
}

/// What the traced branches did, in order. Branches that always jump are recorded too but never asked about.
struct Captured<'a>(std::slice::Iter<'a, (u64, u64)>);

impl Outcomes for Captured<'_> {
    fn outcome(&mut self, branch: &Branch) -> Does {
        match self.0.find(|(pc, category)| *pc == branch.pc && matches!(*category, JUMP | NEXT)) {
            Some((_, JUMP)) => Does::Taken,
            Some(_) => Does::Falls,
            None => Does::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn branches_are_answered_in_order_and_by_address() {
        let traced = [(8, 2), (16, JUMP), (24, NEXT), (16, NEXT)];
        let mut captured = Captured(traced.iter());
        let mut ask = |pc| captured.outcome(&Branch { pc, target: Some(0) });
        assert_eq!([ask(16), ask(16), ask(16)], [Does::Taken, Does::Falls, Does::Unknown]);
    }

    #[test]
    fn a_wave_takes_the_entry_of_the_start_at_its_own_place_and_time() {
        let text = r#"{"rec":"chunk","file":"a"}
{"rec":"occupancy","start":1,"cu":0,"simd":1,"wave_id":2,"time":5,"pc":[64,0]}
{"rec":"occupancy","start":1,"cu":0,"simd":1,"wave_id":3,"time":5,"pc":[128,0]}
{"rec":"wave","cu":0,"simd":1,"wave_id":3,"begin":5,"insts":[[6,0,1,9,128,0]]}
{"rec":"wave","cu":0,"simd":1,"wave_id":2,"begin":5,"insts":[]}"#;
        let waves = waves(text).unwrap();
        assert_eq!(waves.len(), 1);
        assert_eq!((waves[0].entry, &waves[0].traced), (128, &vec![(128, 6)]));
    }
}
