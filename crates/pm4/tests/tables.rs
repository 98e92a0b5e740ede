//! The generated tables hold exactly what `tables/*.json` say.

use std::path::Path;

use serde_json::Value;
use wavescope_pm4::{BlockId, IpBases, Register, Target};

#[expect(clippy::unwrap_used, reason = "a malformed table must fail the test")]
fn json(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tables").join(name);
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[expect(clippy::unwrap_used, reason = "a malformed table must fail the test")]
fn hex(value: &Value) -> u32 {
    u32::from_str_radix(value.as_str().unwrap().trim_start_matches("0x"), 16).unwrap()
}

fn same_register(found: Option<Register>, expected: &Value, bases: &IpBases) -> bool {
    match found {
        None => expected.is_null(),
        Some(register) => !expected.is_null() && register.address(bases) == hex(&expected["abs"]),
    }
}

#[test]
fn absolute_addresses_of_every_block_register_match() {
    let mut compared = 0;
    for target in Target::ALL {
        let bases = IpBases::fixed(target.generation());
        let table = json(&format!("{}.json", target.gfxip()));
        let blocks = table["blocks"].as_array().unwrap();
        assert_eq!(blocks.len(), target.blocks().len());
        for entry in blocks {
            let block = target.block(BlockId(entry["id"].as_u64().unwrap() as u32)).unwrap();
            let rows = entry["regs"].as_array().unwrap();
            assert_eq!(rows.len(), block.registers.len());
            for (row, expected) in block.registers.iter().zip(rows) {
                assert!(same_register(Some(row.select), &expected["select"], &bases));
                assert!(same_register(row.control, &expected["control"], &bases));
                assert!(same_register(row.lo, &expected["lo"], &bases));
                assert!(same_register(row.hi, &expected["hi"], &bases));
                compared += 4;
            }
        }
    }
    assert!(compared > 2000, "{compared}");
}

#[test]
fn absolute_addresses_of_every_named_register_match() {
    let table = json("registers.json");
    for target in Target::ALL {
        let generation = target.generation();
        let key = format!("{generation:?}").to_lowercase();
        let bases = IpBases::fixed(generation);
        for (name, entry) in table["registers"].as_object().unwrap() {
            let found = generation.registers().find(|fixed| fixed.name.as_str() == name);
            let expected = entry.get(&key).unwrap_or(&Value::Null);
            assert!(same_register(found.map(|fixed| fixed.register), expected, &bases), "{name} on {key}");
        }
    }
}
