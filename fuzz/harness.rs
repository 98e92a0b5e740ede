//! What the fuzz targets run. The tests of `wavescope-att-decode` run the same on random and damaged inputs, so that
//! a checkout without a nightly toolchain runs it too.

use wavescope_att_decode::jsonl::JsonLines;
use wavescope_att_decode::quick::{ScanState, TraceFormat, cut, scan};
use wavescope_att_decode::{
    CodeObjects, Decoder, Options, Pc, ProgramLine, Record, Recovery, Tokens, assemble, dump,
};
use wavescope_isa::{CodeObject, Instructions, Target, decode};

/// The token layer, the dump and the quick scan.
pub(crate) fn tokens(data: &[u8]) {
    let Ok(tokens) = Tokens::new(data) else { return };
    let (mut count, mut end) = (0usize, 0);
    for token in tokens {
        assert!(token.bit_offset >= end, "tokens overlap");
        end = token.bit_offset + u64::from(token.bits);
        count += 1;
    }
    assert!(count <= data.len() * 2 + 8, "{count} tokens in {} bytes", data.len());
    let mut text = String::new();
    let _ = dump::write(data, &mut text);
    quick(data);
}

fn quick(data: &[u8]) {
    let Ok(format) = TraceFormat::of_first_chunk(data) else { return };
    let found = scan(&format, data, true);
    let _ = ScanState::default().replay(&format, &found, |_| std::ops::ControlFlow::<()>::Continue(()));
    let piece = cut(&format, &ScanState::default(), data, true, data.len() / 3..data.len());
    if let Ok(piece) = piece {
        run(&piece, &[], Options::default(), &[]);
    }
}

/// A full decode. The first byte chooses how, the next two how much of the rest is program code.
pub(crate) fn full_decode(data: &[u8]) {
    let Some((&[how, low, high], rest)) = data.split_first_chunk::<3>() else { return };
    let code = usize::from(u16::from_le_bytes([low, high])).min(rest.len());
    let (code, chunk) = rest.split_at(code);
    let options = match how & 3 {
        0 => Options::default(),
        1 => Options::streaming(),
        2 => Options { recovery: Recovery::Resync, ..Options::default() },
        _ => Options { recovery: Recovery::Resync, ..Options::streaming() },
    };
    let whole = run(chunk, code, options, &[]);
    if how & 4 != 0 {
        let pieces = [usize::from(how >> 3) + 1, 7, 300];
        assert_eq!(whole, run(chunk, code, options, &pieces), "the pieces show in the records");
    }
}

/// Records of a chunk whose program is this code at address 0 of any code object.
fn run(chunk: &[u8], code: &[u8], options: Options, pieces: &[usize]) -> String {
    let source = |pc: Pc, gfxip: u32| {
        let target = match gfxip {
            9 => Target::Gfx942,
            10 => Target::Gfx1030,
            11 => Target::Gfx1100,
            _ => Target::Gfx1201,
        };
        let bytes = code.get(usize::try_from(pc.address).ok()?..)?;
        decode(target, bytes).ok().map(ProgramLine::from_instruction)
    };
    let mut lines = JsonLines::new(Vec::new());
    let mut decoder = Decoder::new(source, options);
    let result = if pieces.is_empty() {
        decoder.decode(chunk, &mut lines)
    } else {
        let mut stream = decoder.stream();
        let mut rest = chunk;
        let mut result = Ok(());
        for size in pieces.iter().cycle() {
            let (piece, behind) = rest.split_at(rest.len().min(*size));
            result = stream.push(piece, &mut lines);
            rest = behind;
            if rest.is_empty() || result.is_err() {
                break;
            }
        }
        result.and_then(|()| stream.finish(&mut lines))
    };
    lines.status(result);
    lines.finish().ok().and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default()
}

/// Instruction tables and code objects. The first byte chooses the target.
pub(crate) fn isa(data: &[u8]) {
    let Some((&which, rest)) = data.split_first() else { return };
    let target = Target::ALL[usize::from(which) % Target::ALL.len()];
    let mut at = 0;
    for (offset, _) in Instructions::new(target, rest) {
        assert!(offset >= at, "instructions run back");
        at = offset;
    }
    if let Ok(object) = CodeObject::parse(rest) {
        for kernel in object.kernels() {
            let _ = object.decode_at(target, kernel.entry_vaddr());
        }
    }
    let mut code = CodeObjects::new();
    if code.add(rest, Some(0), None).is_ok() {
        let chunk = assemble::chunk(
            wavescope_att_decode::Generation::Gfx11,
            "HEADER version=3\nWAVE_START slot=1\n+9 VALU_INST slot=1\n+9 INST slot=1 code=3\n+9 WAVE_END slot=1",
        );
        if let Ok(chunk) = chunk {
            let _ = Decoder::new(code, Options::default()).decode(&chunk, &mut |_: Record<'_>| {});
        }
    }
}
