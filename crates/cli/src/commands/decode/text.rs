//! Records as lines for people: what, when, where.

use std::io::{self, Write};

use wavescope_att_decode::{
    Error, Loss, Marker, Occupancy, OtherSimd, Pc, PerfEvent, RealtimeSample, Record, RecordSink, ShaderData,
    Wave,
};

/// Writes one line a record, and below a wave one line an instruction. Writing errors are kept until the end.
#[derive(Debug)]
pub(super) struct TextLines<W> {
    out: W,
    error: Option<io::Error>,
}

impl<W: Write> TextLines<W> {
    /// Writes to `out`, which should be buffered.
    pub(super) fn new(out: W) -> Self {
        Self { out, error: None }
    }

    fn line(&mut self, text: std::fmt::Arguments<'_>) {
        if self.error.is_none() {
            self.error = writeln!(self.out, "{text}").err();
        }
    }

    fn wave(&mut self, wave: &Wave<'_>) {
        let Wave { cu, simd, wave_id, begin_time: begin, end_time: end, .. } = *wave;
        let count = wave.instructions.len();
        self.line(format_args!(
            "{begin:>12} wave       cu {cu} simd {simd} slot {wave_id}: {} clocks, {count} instructions",
            end - begin
        ));
        for instruction in wave.instructions {
            let (time, duration, stall) = (instruction.time, instruction.duration, instruction.stall());
            let category = instruction.category();
            self.line(format_args!(
                "{time:>12}   {:24} {category:?}, {duration} clocks, {stall} of them stalled",
                place(instruction.pc)
            ));
        }
    }
}

/// One line for a record of a kind.
impl<W: Write> TextLines<W> {
    fn occupancy(&mut self, r: &Occupancy) {
        let what = if r.is_start() { "starts" } else { "ends" };
        let (time, cu, simd, slot, kernel) = (r.time, r.cu, r.simd, r.wave_id, place(r.pc));
        self.line(format_args!(
            "{time:>12} occupancy  cu {cu} simd {simd} slot {slot} {what}, kernel {kernel}"
        ));
    }

    fn perf(&mut self, r: &PerfEvent) {
        let (time, cu, bank, events) = (r.time, r.cu, r.bank, r.events);
        self.line(format_args!("{time:>12} perf       cu {cu} bank {bank}: {events:?}"));
    }

    fn shader_data(&mut self, r: &ShaderData) {
        let (time, cu, simd, slot, value) = (r.time, r.cu, r.simd, r.wave_id, r.value);
        self.line(format_args!("{time:>12} data       cu {cu} simd {simd} slot {slot}: {value:#x}"));
    }

    fn realtime(&mut self, r: &RealtimeSample) {
        let (shader, real) = (r.shader_clock, r.realtime_clock);
        self.line(format_args!("{shader:>12} clock      real-time clock {real}"));
    }

    fn other_simd(&mut self, r: &OtherSimd) {
        let (time, wgp, category, cycles) = (r.time, r.wgp, r.category, r.cycles);
        self.line(format_args!("{time:>12} other simd wgp {wgp}: category {category}, {cycles} clocks"));
    }

    fn marker(&mut self, r: &Marker<'_>) {
        self.line(format_args!("{:>12} marker     {:?} {}", r.shader_data.time, r.kind, r.name));
    }

    fn loss(&mut self, r: &Loss) {
        let (time, kind, offset, bytes) = (r.time, r.kind.name(), r.byte_offset, r.bytes);
        self.line(format_args!("{time:>12} loss       {kind} at byte {offset}, {bytes} bytes"));
    }
}

/// A program counter for people.
fn place(pc: Pc) -> String {
    match pc {
        Pc::INVALID => "unknown".to_owned(),
        Pc { address, code_object_id: 0 } => format!("{address:#x}"),
        Pc { address, code_object_id } => format!("object {code_object_id} + {address:#x}"),
    }
}

impl<W: Write> RecordSink for TextLines<W> {
    fn record(&mut self, record: Record<'_>) {
        match record {
            Record::Gfxip(value) => self.line(format_args!("{:>12} gfxip      {value}", "")),
            Record::Info(info) => self.line(format_args!("{:>12} info       {info:?}", "")),
            Record::RtFrequency(hz) => {
                self.line(format_args!("{:>12} clock      real time runs at {hz} Hz", ""))
            }
            Record::Wave(wave) => self.wave(&wave),
            Record::Occupancy(records) => records.iter().for_each(|r| self.occupancy(r)),
            Record::PerfEvents(records) => records.iter().for_each(|r| self.perf(r)),
            Record::ShaderData(records) => records.iter().for_each(|r| self.shader_data(r)),
            Record::Realtime(records) => records.iter().for_each(|r| self.realtime(r)),
            Record::OtherSimd(records) => records.iter().for_each(|r| self.other_simd(r)),
            Record::Event(r) => self.line(format_args!("{:>12} event      {:?}", r.time, r.kind)),
            Record::Dispatch(r) => {
                self.line(format_args!("{:>12} dispatch   kernel {}", r.time, place(r.entry_point)));
            }
            Record::Markers(records) => records.iter().for_each(|r| self.marker(r)),
            Record::Loss(r) => self.loss(&r),
            _ => {}
        }
    }
}

impl<W: Write> super::Lines for TextLines<W> {
    fn chunk(&mut self, file: &str, shader_engine: u32, bytes: usize) {
        self.line(format_args!("{file}: shader engine {shader_engine}, {bytes} bytes"));
    }

    fn status(&mut self, result: Result<(), Error>) {
        if let Err(error) = result {
            self.line(format_args!("{:>12} stopped    {error}", ""));
        }
    }

    fn finish(mut self) -> io::Result<()> {
        self.error.take().map_or_else(|| self.out.flush(), Err)
    }
}
