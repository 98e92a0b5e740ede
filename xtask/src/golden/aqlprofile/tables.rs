//! `tables/GFX.json`: the counter blocks of a chip, number by number.

use anyhow::{Context, Result};
use serde_json::Value;
use wavescope_pm4::{Attributes, Block, BlockId, Ip, IpBases, Register, Target};

use super::value::{list, number, small, text};
use crate::golden::Outcome;

/// The tables' names of attribute bits.
const ATTRIBUTES: [(&str, Attributes); 16] = [
    ("DEFAULT", Attributes(1)),
    ("SE", Attributes::SE),
    ("SQ", Attributes::SQ),
    ("CLEAN", Attributes::CLEAN),
    ("MC", Attributes::MC),
    ("GRBM", Attributes::GRBM),
    ("TC", Attributes::TC),
    ("EXPL_INST", Attributes::EXPLICIT_INSTANCE),
    ("SPM_GLOBAL", Attributes::SPM_GLOBAL),
    ("GUS", Attributes::GUS),
    ("SA", Attributes::SA),
    ("RPB", Attributes::RPB),
    ("SPI_SPECIAL", Attributes::SPI),
    ("WGP", Attributes::WGP),
    ("AID", Attributes::AID),
    ("ATC", Attributes::ATC),
];

/// Checks the case.
pub(super) fn check(case: &Value, outcome: &mut Outcome) -> Result<()> {
    let gfx = text(&case["gfx"])?;
    let target = Target::from_gfxip(gfx).with_context(|| format!("no table of ours is for {gfx}"))?;
    let blocks = list(&case["blocks"])?;
    outcome.compare("blocks.len", &blocks.len(), &target.blocks().len());
    for entry in blocks {
        let id = BlockId(small(&entry["id"])?);
        let block = target.block(id).with_context(|| format!("{id} is not in our table"))?;
        compare_block(entry, target, block, outcome)?;
    }
    Ok(())
}

fn compare_block(entry: &Value, target: Target, block: &Block, outcome: &mut Outcome) -> Result<()> {
    let name = block.name;
    outcome.compare(format_args!("{name}.name"), &text(&entry["name"])?, &name);
    let numbers = [
        ("counter_group", &entry["counter_group"], block.counter_group),
        ("instances", &entry["instances"], block.instances),
        ("counters", &entry["counters"], block.counters),
        ("max_event", &entry["max_event"], block.max_event),
        ("attr", &entry["attr"], block.attributes.0),
        ("select.base", &entry["select"]["base"], block.select.base),
        ("select.event_mask", &entry["select"]["event_mask"], block.select.event_mask),
    ];
    for (key, expected, found) in numbers {
        outcome.compare(format_args!("{name}.{key}"), &small(expected)?, &found);
    }
    let mut named = list(&entry["attrs"])?.iter().map(text).collect::<Result<Vec<_>>>()?;
    named.sort_unstable();
    let ours = ATTRIBUTES.iter().filter(|(_, bit)| block.attributes.has(*bit));
    let mut ours: Vec<_> = ours.map(|(name, _)| *name).collect();
    ours.sort_unstable();
    outcome.compare(format_args!("{name}.attrs"), &named, &ours);
    let rows = list(&entry["regs"])?;
    outcome.compare(format_args!("{name}.regs.len"), &rows.len(), &block.registers.len());
    for (at, (expected, found)) in rows.iter().zip(block.registers).enumerate() {
        let parts =
            [("select", Some(found.select)), ("control", found.control), ("lo", found.lo), ("hi", found.hi)];
        for (key, found) in parts {
            let expected = register(&expected[key])?;
            let found = found.map(|found| flat(found, target));
            outcome.compare(format_args!("{name}.regs[{at}].{key}"), &expected, &found);
        }
    }
    Ok(())
}

/// IP block, segment, offset, absolute address.
type Flat = (String, u64, u64, u64);

fn register(value: &Value) -> Result<Option<Flat>> {
    if value.is_null() {
        return Ok(None);
    }
    let flat = (
        text(&value["ip"])?.to_owned(),
        number(&value["seg"])?,
        number(&value["off"])?,
        number(&value["abs"])?,
    );
    Ok(Some(flat))
}

fn flat(register: Register, target: Target) -> Flat {
    let bases = IpBases::fixed(target.generation());
    let ip = match register.ip {
        Ip::Gc => "GC",
        Ip::Athub => "ATHUB",
    };
    let (segment, offset) = (register.segment.into(), register.offset.into());
    (ip.to_owned(), segment, offset, register.address(&bases).into())
}
