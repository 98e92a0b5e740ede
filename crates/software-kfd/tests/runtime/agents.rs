//! What the runtime finds.

use hsa_sys::{
    HSA_AMD_AGENT_INFO_COMPUTE_UNIT_COUNT, HSA_AMD_AGENT_INFO_TIMESTAMP_FREQUENCY, hsa_agent_info_t,
};

use crate::rig::{Rig, TARGETS, hsa, on_runtime};

fn number<T: Default>(rig: &Rig, gpu: usize, attribute: u32) -> T {
    let mut value = T::default();
    let agent = rig.application.gpus()[gpu].agent();
    hsa!(rig, core_.hsa_agent_get_info_fn(agent, hsa_agent_info_t(attribute), (&raw mut value).cast()));
    value
}

// Compute units as AMD's data sheets give them; the clock is the hardware's reference clock.
#[test]
fn each_target_is_found_with_its_compute_units_and_clock() {
    on_runtime(&TARGETS, module_path!(), "each_target_is_found_with_its_compute_units_and_clock", |rig| {
        let sheets = [("gfx942", 304), ("gfx90a", 104), ("gfx950", 256), ("gfx1100", 96), ("gfx1201", 64)];
        assert_eq!(rig.application.gpus().len(), 1);
        let target = rig.gpu().target();
        let (_, compute_units) = sheets.iter().find(|(name, _)| *name == target).unwrap();
        assert_eq!(number::<u32>(rig, 0, HSA_AMD_AGENT_INFO_COMPUTE_UNIT_COUNT.0), *compute_units);
        assert_eq!(number::<u64>(rig, 0, HSA_AMD_AGENT_INFO_TIMESTAMP_FREQUENCY.0), 100_000_000);
    });
}

#[test]
fn eight_gpus_are_found_in_one_process() {
    on_runtime(&["gfx942-x8", "gfx1100-x8"], module_path!(), "eight_gpus_are_found_in_one_process", |rig| {
        assert_eq!(rig.application.gpus().len(), 8);
    });
}
