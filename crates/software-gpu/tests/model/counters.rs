//! Counters read by recorded command buffers, against launch geometry and the truth log.

use wavescope_pm4::Generation;
use wavescope_software_gpu::{DeviceConfig, DeviceOptions, Truth, WaveTruth};

use crate::rig::stream::{Loaded, Recorded};
use crate::rig::{Clock, Rig, RigQueue, dispatch, overlapping, slow_clock, virtual_clock};

const TARGETS: [&str; 5] = ["gfx90a", "gfx942", "gfx1030", "gfx1100", "gfx1201"];
/// Grid and work-group sizes: full, partial, one, two and three dimensions.
const SHAPES: [([u32; 3], [u16; 3]); 8] = [
    ([64, 1, 1], [64, 1, 1]),
    ([4096, 1, 1], [256, 1, 1]),
    ([1000, 1, 1], [96, 1, 1]),
    ([1, 1, 1], [1024, 1, 1]),
    ([33, 17, 1], [16, 16, 1]),
    ([100, 30, 7], [8, 4, 2]),
    ([65, 3, 5], [64, 1, 3]),
    ([100_000, 1, 1], [1024, 1, 1]),
];

/// Waves that grid and work-group size give: each work-group rounds its own work-items up to whole waves.
fn waves_of(grid: [u32; 3], workgroup: [u16; 3], wave: u32) -> u64 {
    let extents = |d: usize| {
        let size = u32::from(workgroup[d]);
        (0..grid[d]).step_by(size as usize).map(move |first| size.min(grid[d] - first)).collect::<Vec<_>>()
    };
    let (xs, ys, zs) = (extents(0), extents(1), extents(2));
    let mut waves = 0;
    for x in &xs {
        for y in &ys {
            waves += zs.iter().map(|z| u64::from((x * y * z).div_ceil(wave))).sum::<u64>();
        }
    }
    waves
}

/// The recorded set GRBM_GUI_ACTIVE + SQ_WAVES on a rig, ready to run.
struct Counted {
    rig: Rig,
    queue: RigQueue,
    loaded: Loaded,
    config: DeviceConfig,
    kernel: u64,
    wave_size: u32,
}

impl Counted {
    /// The device of `target` with a kernel of waves of 64.
    fn new(target: &str) -> Self {
        Self::with(target, virtual_clock())
    }

    fn with(target: &str, clock: Clock) -> Self {
        let recorded = Recorded::own(target, "pmc-mix-grbm-sq.json");
        let config = recorded.config();
        let rig = Rig::with(config.clone(), DeviceOptions::default(), clock, 16 << 30);
        let queue = rig.queue(64);
        let loaded = recorded.load(&rig);
        let kernel = rig.kernel(3);
        Self { rig, queue, loaded, config, kernel, wave_size: 64 }
    }

    /// The same with waves of 32, on chips that have them.
    fn narrow(target: &str) -> Self {
        let mut counted = Self::new(target);
        counted.kernel = counted.rig.narrow_kernel();
        counted.wave_size = 32;
        counted
    }

    /// Runs buffers and kernels in this order and waits for the last.
    fn run(&mut self, steps: &[Step]) {
        let signal = self.rig.signal(1);
        let last = steps.len() - 1;
        let packets: Vec<_> = (0..)
            .zip(steps)
            .map(|(index, step)| {
                let signal = if index == last { signal } else { 0 };
                match *step {
                    Step::Buffer(name) => self.loaded.packet(name, signal),
                    Step::Kernel(grid, workgroup) => dispatch(self.kernel, grid, workgroup, signal),
                    Step::Overlapping(grid, workgroup) => {
                        overlapping(dispatch(self.kernel, grid, workgroup, signal))
                    }
                }
            })
            .collect();
        self.queue.submit(&packets);
        self.rig.wait(signal, 0);
    }

    fn slots(&self) -> Vec<u64> {
        (0..self.loaded.sizes[0] / 8)
            .map(|slot| self.rig.arena().load(self.loaded.bases[0] + 8 * slot))
            .collect()
    }

    /// Values of the two counters in the order in which the read buffer visits them: for each XCC, GRBM once, then SQ
    /// by engine (and array and WGP on gfx11 and gfx12).
    fn values(&self) -> (Vec<u64>, Vec<u64>) {
        let slots = self.slots();
        let wgps = u32::from(self.config.cu_per_sa).div_ceil(2);
        let sequencers = match self.config.target.generation() {
            Generation::Gfx9 | Generation::Gfx10 => u32::from(self.config.se_per_xcc),
            Generation::Gfx11 | Generation::Gfx12 => self.config.shader_engines() * 2 * wgps,
        } as usize;
        let per_xcc = slots[..(sequencers + 1) * usize::from(self.config.xcc)].chunks(sequencers + 1);
        per_xcc.map(|chunk| (chunk[0], chunk[1..].to_vec())).fold((vec![], vec![]), |mut all, (grbm, sq)| {
            all.0.push(grbm);
            all.1.extend(sq);
            all
        })
    }

    /// The truth's waves counted the same way.
    fn truth(&self) -> Vec<u64> {
        let index = |wave: &WaveTruth| {
            let engine = usize::from(wave.xcc) * usize::from(self.config.se_per_xcc) + usize::from(wave.se);
            match self.config.target.generation() {
                Generation::Gfx9 | Generation::Gfx10 => engine,
                Generation::Gfx11 | Generation::Gfx12 => {
                    let wgps = usize::from(self.config.cu_per_sa).div_ceil(2);
                    (engine * 2 + usize::from(wave.sa)) * wgps + usize::from(wave.cu / 2)
                }
            }
        };
        let mut counts = vec![0; self.values().1.len()];
        self.rig.waves().iter().for_each(|wave| counts[index(wave)] += 1);
        counts
    }
}

#[derive(Clone, Copy)]
enum Step {
    Buffer(&'static str),
    Kernel([u32; 3], [u16; 3]),
    /// Without the barrier bit.
    Overlapping([u32; 3], [u16; 3]),
}

use Step::{Buffer, Kernel, Overlapping};

fn check_waves(target: &str, make: impl Fn(&str) -> Counted) {
    for (grid, workgroup) in SHAPES {
        let mut counted = make(target);
        counted.run(&[Buffer("start"), Kernel(grid, workgroup), Buffer("read"), Buffer("stop")]);
        let (_, waves) = counted.values();
        let expected = waves_of(grid, workgroup, counted.wave_size);
        assert_eq!(waves.iter().sum::<u64>(), expected, "{target} {grid:?} {workgroup:?}");
        assert_eq!(waves, counted.truth(), "{target} {grid:?} {workgroup:?}");
    }
}

#[test]
fn sq_waves_equals_launch_geometry_and_placement() {
    TARGETS.iter().for_each(|target| check_waves(target, Counted::new));
}

#[test]
fn sq_waves_counts_waves_of_32_where_the_kernel_has_them() {
    ["gfx1030", "gfx1100", "gfx1201"].iter().for_each(|target| check_waves(target, Counted::narrow));
}

#[test]
fn reading_keeps_counting_and_stopping_freezes() {
    let kernel = Kernel([6400, 1, 1], [64, 1, 1]);
    let mut counted = Counted::new("gfx942");
    let total = |counted: &Counted| counted.values().1.iter().sum::<u64>();
    counted.run(&[Buffer("start"), kernel, Buffer("read")]);
    assert_eq!(total(&counted), 100);
    counted.run(&[kernel, Buffer("read")]);
    assert_eq!(total(&counted), 200);
    counted.run(&[Buffer("stop"), kernel, Buffer("start"), Buffer("read")]);
    assert_eq!(total(&counted), 0, "start clears");
    counted.run(&[kernel, Buffer("read")]);
    assert_eq!(total(&counted), 100);
}

#[test]
fn gui_active_is_the_time_in_which_dispatches_were_at_work() {
    for target in TARGETS {
        let mut counted = Counted::new(target);
        counted.run(&[Buffer("start"), Kernel([64_000, 1, 1], [64, 1, 1]), Buffer("read")]);
        let truth = counted.rig.notes.0.lock().unwrap();
        let wavescope_software_gpu::Truth::Dispatch(dispatch) = truth[0] else {
            panic!("no dispatch in the log")
        };
        let (gui, _) = counted.values();
        assert!(gui.iter().all(|&cycles| cycles == dispatch.end - dispatch.start), "{target}: {gui:?}");
    }
}

// Three kernels side by side: each wave counts once, and time in which several were at work counts once too.
#[test]
fn overlapping_kernels_count_their_waves_each_and_their_time_once() {
    for target in TARGETS {
        let mut counted = Counted::with(target, slow_clock());
        let kernel = |waves: u32| Overlapping([64 * waves, 1, 1], [64, 1, 1]);
        counted.run(&[Buffer("start"), kernel(1000), kernel(1), kernel(100), Buffer("read")]);
        let (gui, waves) = counted.values();
        assert_eq!(waves, counted.truth(), "{target}");
        let truth = counted.rig.notes.0.lock().unwrap();
        let spans = truth.iter().filter_map(|truth| match truth {
            Truth::Dispatch(dispatch) => Some((dispatch.start, dispatch.end)),
            _ => None,
        });
        let spans: Vec<_> = spans.collect();
        let union = spans.iter().map(|span| span.1).max().unwrap() - spans[0].0;
        assert!(union < spans.iter().map(|(start, end)| end - start).sum(), "{target}: {spans:?}");
        assert!(gui.iter().all(|&cycles| cycles == union), "{target}: {gui:?} instead of {union}");
    }
}

#[test]
fn work_of_a_queue_that_takes_no_part_is_not_counted() {
    let mut counted = Counted::new("gfx942");
    counted.run(&[Buffer("start")]);
    let (mut other, signal) = (counted.rig.queue(16), counted.rig.signal(1));
    other.submit(&[dispatch(counted.kernel, [640, 1, 1], [64, 1, 1], signal)]);
    counted.rig.wait(signal, 0);
    counted.run(&[Buffer("read")]);
    assert_eq!(counted.values().1.iter().sum::<u64>(), 0);
}

#[test]
fn an_unmodelled_event_is_listed_and_reads_zero() {
    let mut counted = Counted::new("gfx942");
    // The select of SQ counter 0 as the start buffer has it: register 0xD9C0, SQ_WAVES; 27 is SQ_INSTS_VALU_ADD_F16.
    let start = counted.loaded.buffer("start").clone();
    let at = start.dwords.windows(2).position(|pair| pair[0] == 0x19C0).unwrap();
    counted.rig.arena().store_u32(start.address + 4 * (at as u64 + 1), 0x0F0F_F000 | 27);
    counted.run(&[Buffer("start"), Kernel([640, 1, 1], [64, 1, 1]), Buffer("read")]);
    assert_eq!(counted.values().1.iter().sum::<u64>(), 0);
    let truth = counted.rig.notes.0.lock().unwrap();
    let listed = truth.iter().any(|entry| {
        matches!(entry, wavescope_software_gpu::Truth::Unmodelled { block, event: 27, .. } if block == "SQ")
    });
    assert!(listed, "{truth:?}");
}

// A compiled buffer is replayed only while its bytes are the same.
#[test]
fn a_buffer_that_was_changed_in_place_runs_as_changed() {
    let run = [Buffer("start"), Kernel([640, 1, 1], [64, 1, 1]), Buffer("read")];
    let mut counted = Counted::new("gfx942");
    counted.run(&run);
    assert_eq!(counted.values().1.iter().sum::<u64>(), 10);
    let start = counted.loaded.buffer("start").clone();
    let at = start.dwords.windows(2).position(|pair| pair[0] == 0x19C0).unwrap() as u64 + 1;
    // SQ_ITEMS, event 14, in place of SQ_WAVES.
    counted.rig.arena().store_u32(start.address + 4 * at, 0x0F0F_F000 | 14);
    counted.run(&run);
    assert_eq!(counted.values().1.iter().sum::<u64>(), 640);
}
