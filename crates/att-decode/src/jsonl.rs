//! Records as lines of JSON: one object per line, numbers in decimal, `rec` names the kind.
//!
//! A program counter is `[address, code object id]`. A chunk begins with a `chunk` line and ends with a `status`
//! line. Records that come in a block are one line each.

use std::fmt::Write as _;
use std::io;

use crate::error::Error;
use crate::record::{
    Dispatch, Event, Instruction, Loss, Marker, Occupancy, OtherSimd, Pc, PerfEvent, RealtimeSample, Record,
    RecordSink, ShaderData, TimelineEntry, Wave,
};

/// A sink that writes each record as a line.
///
/// Writing errors are kept and returned by [`JsonLines::finish`], as a sink cannot fail.
///
/// ```
/// use wavescope_att_decode::{Record, RecordSink, jsonl::JsonLines};
/// let mut lines = JsonLines::new(Vec::new());
/// lines.record(Record::Gfxip(11));
/// assert_eq!(lines.finish()?, b"{\"rec\":\"gfxip\",\"value\":11}\n");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct JsonLines<W> {
    out: W,
    line: String,
    error: Option<io::Error>,
}

impl<W: io::Write> JsonLines<W> {
    /// Writes to `out`, which should be buffered.
    pub fn new(out: W) -> Self {
        JsonLines { out, line: String::new(), error: None }
    }

    /// Begins a chunk: its file, shader engine and size.
    pub fn chunk(&mut self, file: &str, shader_engine: u32, bytes: usize) {
        self.line.push_str("{\"rec\":\"chunk\",\"file\":");
        push_text(&mut self.line, file);
        let _ = write!(self.line, ",\"se\":{shader_engine},\"bytes\":{bytes}");
        self.end_line();
    }

    /// Ends a chunk with what decoding it returned.
    pub fn status(&mut self, result: Result<(), Error>) {
        let value = result.map_or_else(Error::status, |()| 0);
        let _ = write!(self.line, "{{\"rec\":\"status\",\"value\":{value}");
        self.end_line();
    }

    /// Writes lines made elsewhere, for example by a chunk decoded on another thread.
    pub fn raw(&mut self, lines: &str) {
        if self.error.is_none() {
            self.error = self.out.write_all(lines.as_bytes()).err();
        }
    }

    /// Flushes and gives the writer back.
    ///
    /// # Errors
    ///
    /// The first error that writing met.
    pub fn finish(mut self) -> io::Result<W> {
        match self.error.take() {
            Some(error) => Err(error),
            None => self.out.flush().map(|()| self.out),
        }
    }

    fn each<T>(&mut self, records: &[T], push: fn(&mut String, &T)) {
        for record in records {
            push(&mut self.line, record);
            self.end_line();
        }
    }

    fn number(&mut self, kind: &str, value: u64) {
        let _ = write!(self.line, "{{\"rec\":\"{kind}\",\"value\":{value}");
        self.end_line();
    }

    fn end_line(&mut self) {
        self.line.push_str("}\n");
        if self.error.is_none() {
            self.error = self.out.write_all(self.line.as_bytes()).err();
        }
        self.line.clear();
    }
}

impl<W: io::Write> RecordSink for JsonLines<W> {
    fn record(&mut self, record: Record<'_>) {
        match record {
            Record::Gfxip(value) => self.number("gfxip", u64::from(value)),
            Record::Info(info) => self.number("info", info as u64),
            Record::RtFrequency(hz) => self.number("rt_frequency", hz),
            Record::Occupancy(records) => self.each(records, push_occupancy),
            Record::PerfEvents(records) => self.each(records, push_perf_event),
            Record::ShaderData(records) => self.each(records, push_shader_data),
            Record::Realtime(records) => self.each(records, push_realtime),
            Record::OtherSimd(records) => self.each(records, push_other_simd),
            Record::Markers(records) => self.each(records, push_marker),
            Record::Wave(wave) => self.each(&[wave], push_wave),
            Record::Event(event) => self.each(&[event], push_event),
            Record::Dispatch(dispatch) => self.each(&[dispatch], push_dispatch),
            Record::Loss(loss) => self.each(&[loss], push_loss),
        }
    }
}

/// Appends a JSON string.
fn push_text(line: &mut String, text: &str) {
    line.push('"');
    for c in text.chars() {
        match c {
            '"' => line.push_str("\\\""),
            '\\' => line.push_str("\\\\"),
            c if c < ' ' => {
                let _ = write!(line, "\\u{:04x}", u32::from(c));
            }
            c => line.push(c),
        }
    }
    line.push('"');
}

fn push_pc(line: &mut String, name: &str, pc: Pc) {
    let _ = write!(line, ",\"{name}\":[{},{}]", pc.address, pc.code_object_id);
}

fn push_occupancy(line: &mut String, record: &Occupancy) {
    let Occupancy { pc, time, cu, simd, wave_id, .. } = *record;
    let (start, is_ext) = (record.is_start() as u8, record.is_ext() as u8);
    let (me, pipe, wg, cluster) =
        (record.me_id(), record.pipe_id(), record.workgroup_id(), record.cluster_id());
    let _ = write!(
        line,
        "{{\"rec\":\"occupancy\",\"time\":{time},\"cu\":{cu},\"simd\":{simd},\"wave_id\":{wave_id},\
         \"start\":{start},\"me\":{me},\"pipe\":{pipe},\"is_ext\":{is_ext},\"wg\":{wg},\"cluster\":{cluster}"
    );
    push_pc(line, "pc", pc);
}

fn push_perf_event(line: &mut String, record: &PerfEvent) {
    let PerfEvent { time, events: [a, b, c, d], cu, bank } = *record;
    let _ = write!(
        line,
        "{{\"rec\":\"perfevent\",\"time\":{time},\"cu\":{cu},\"bank\":{bank},\"events\":[{a},{b},{c},{d}]"
    );
}

fn push_shader_data(line: &mut String, record: &ShaderData) {
    let ShaderData { time, value, cu, simd, wave_id, flags, .. } = *record;
    let _ = write!(
        line,
        "{{\"rec\":\"shaderdata\",\"time\":{time},\"value\":{value},\"cu\":{cu},\"simd\":{simd},\
         \"wave_id\":{wave_id},\"flags\":{flags}"
    );
}

fn push_realtime(line: &mut String, record: &RealtimeSample) {
    let RealtimeSample { shader_clock, realtime_clock, .. } = *record;
    let _ = write!(
        line,
        "{{\"rec\":\"realtime\",\"shader_clock\":{shader_clock},\"realtime_clock\":{realtime_clock}"
    );
}

fn push_other_simd(line: &mut String, record: &OtherSimd) {
    let OtherSimd { time, cycles, wgp, category, .. } = *record;
    let _ = write!(
        line,
        "{{\"rec\":\"other_simd\",\"time\":{time},\"cycles\":{cycles},\"wgp\":{wgp},\"category\":{category}"
    );
}

fn push_event(line: &mut String, record: &Event) {
    let Event { time, kind, me_id, pipe_id, flags, payload, byte_offset } = *record;
    let (kind, flags) = (kind as u32, flags.0);
    let _ = write!(
        line,
        "{{\"rec\":\"event\",\"time\":{time},\"type\":{kind},\"me\":{me_id},\"pipe\":{pipe_id},\
         \"flags\":{flags},\"payload\":{payload},\"byte_offset\":{byte_offset}"
    );
}

fn push_dispatch(line: &mut String, record: &Dispatch) {
    let Dispatch { time, me_id, pipe_id, user_sgprs, flags, vgprs, sgprs, lds_size, .. } = *record;
    let (flags, [x, y, z]) = (flags.0, record.thread_dim);
    let (packet, offset) = (record.dispatch_pkt_addr, record.byte_offset);
    let _ = write!(
        line,
        "{{\"rec\":\"dispatch\",\"time\":{time},\"me\":{me_id},\"pipe\":{pipe_id},\"user_sgprs\":{user_sgprs},\
         \"flags\":{flags},\"vgprs\":{vgprs},\"sgprs\":{sgprs},\"lds_size\":{lds_size},\"dim\":[{x},{y},{z}],\
         \"pkt_addr\":{packet},\"byte_offset\":{offset}"
    );
    push_pc(line, "entry", record.entry_point);
}

fn push_wave(line: &mut String, wave: &Wave<'_>) {
    let Wave { cu, simd, wave_id, contexts, dispatcher, workgroup_id, cluster_id, .. } = *wave;
    let (begin, end) = (wave.begin_time, wave.end_time);
    let _ = write!(
        line,
        "{{\"rec\":\"wave\",\"cu\":{cu},\"simd\":{simd},\"wave_id\":{wave_id},\"contexts\":{contexts},\
         \"dispatcher\":{dispatcher},\"wg\":{workgroup_id},\"cluster\":{cluster_id},\"begin\":{begin},\
         \"end\":{end},\"timeline\":"
    );
    push_list(line, wave.timeline, |line, &TimelineEntry { state, duration }| {
        let _ = write!(line, "[{},{duration}]", state as i32);
    });
    line.push_str(",\"insts\":");
    push_list(line, wave.instructions, push_instruction);
}

fn push_instruction(line: &mut String, instruction: &Instruction) {
    let Instruction { duration, time, pc, .. } = *instruction;
    let (category, stall) = (instruction.category_number(), instruction.stall());
    let _ = write!(line, "[{category},{stall},{duration},{time},{},{}]", pc.address, pc.code_object_id);
}

fn push_list<T>(line: &mut String, items: &[T], push: fn(&mut String, &T)) {
    line.push('[');
    for (number, item) in items.iter().enumerate() {
        if number > 0 {
            line.push(',');
        }
        push(line, item);
    }
    line.push(']');
}

fn push_marker(line: &mut String, marker: &Marker<'_>) {
    let ShaderData { time, value, cu, simd, wave_id, .. } = marker.shader_data;
    let Marker { code_object_id, marker_id, record_kind, kind, flags, payload_index, payload_count, .. } =
        *marker;
    let (record_kind, kind, flags) = (record_kind as u32, kind as u32, flags.0);
    let _ = write!(
        line,
        "{{\"rec\":\"marker\",\"time\":{time},\"value\":{value},\"cu\":{cu},\"simd\":{simd},\
         \"wave_id\":{wave_id},\"code_object\":{code_object_id},\"marker_id\":{marker_id},\
         \"record_kind\":{record_kind},\"kind\":{kind},\"flags\":{flags},\"payload_index\":{payload_index},\
         \"payload_count\":{payload_count},\"name\":"
    );
    push_text(line, marker.name);
    line.push_str(",\"location\":");
    push_text(line, marker.source_location);
    push_pc(line, "entry", marker.kernel_entry);
}

fn push_loss(line: &mut String, loss: &Loss) {
    let Loss { kind, byte_offset, bytes, time } = *loss;
    let kind = kind.name();
    let _ = write!(
        line,
        "{{\"rec\":\"loss\",\"kind\":\"{kind}\",\"byte_offset\":{byte_offset},\"bytes\":{bytes},\"time\":{time}"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_are_quoted() {
        let mut lines = JsonLines::new(Vec::new());
        lines.chunk("a\"b\\\n", 3, 8);
        let expected = "{\"rec\":\"chunk\",\"file\":\"a\\\"b\\\\\\u000a\",\"se\":3,\"bytes\":8}\n";
        assert_eq!(lines.finish().unwrap(), expected.as_bytes());
    }
}
