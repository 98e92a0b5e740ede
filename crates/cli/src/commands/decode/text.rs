//! Records as lines for people: what, when, where.

use std::io::{self, Write};

use wavescope_att_decode::{Error, Pc, Record, RecordSink, Wave};

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
            Record::Occupancy(records) => {
                for r in records {
                    let what = if r.is_start() { "starts" } else { "ends" };
                    self.line(format_args!(
                        "{:>12} occupancy  cu {} simd {} slot {} {what}, kernel {}",
                        r.time,
                        r.cu,
                        r.simd,
                        r.wave_id,
                        place(r.pc)
                    ));
                }
            }
            Record::PerfEvents(records) => {
                for r in records {
                    let (time, cu, bank, events) = (r.time, r.cu, r.bank, r.events);
                    self.line(format_args!("{time:>12} perf       cu {cu} bank {bank}: {events:?}"));
                }
            }
            Record::ShaderData(records) => {
                for r in records {
                    self.line(format_args!(
                        "{:>12} data       cu {} simd {} slot {}: {:#x}",
                        r.time, r.cu, r.simd, r.wave_id, r.value
                    ));
                }
            }
            Record::Realtime(records) => {
                for r in records {
                    let (shader, real) = (r.shader_clock, r.realtime_clock);
                    self.line(format_args!("{shader:>12} clock      real-time clock {real}"));
                }
            }
            Record::OtherSimd(records) => {
                for r in records {
                    self.line(format_args!(
                        "{:>12} other simd wgp {}: category {}, {} clocks",
                        r.time, r.wgp, r.category, r.cycles
                    ));
                }
            }
            Record::Event(r) => self.line(format_args!("{:>12} event      {:?}", r.time, r.kind)),
            Record::Dispatch(r) => {
                self.line(format_args!("{:>12} dispatch   kernel {}", r.time, place(r.entry_point)));
            }
            Record::Markers(records) => {
                for r in records {
                    self.line(format_args!("{:>12} marker     {:?} {}", r.shader_data.time, r.kind, r.name));
                }
            }
            Record::Loss(r) => self.line(format_args!(
                "{:>12} loss       {} at byte {}, {} bytes",
                r.time,
                r.kind.name(),
                r.byte_offset,
                r.bytes
            )),
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
