//! Decodes one chunk, repeated in memory to a given size, a given number of times. For profilers:
//! `cargo xtask bench decode --callgrind` takes the difference between two counts of runs.
//!
//! `repeat SET_FOLDER CHUNK tokens|full|occupancy|quick BYTES TIMES`

use std::hint::black_box;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use wavescope_att_decode::quick::{TraceFormat, scan};
use wavescope_att_decode::{
    Decoder, InstructionSource, Options, Pc, ProgramLine, Record, RecordKind, RecordSet, Token, Tokens,
};
use wavescope_sqtt_fixtures::{Set, find_line};

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, file, mode, bytes, times] = &arguments[..] else {
        bail!("usage: repeat SET_FOLDER CHUNK tokens|full|occupancy|quick BYTES TIMES");
    };
    let set = Set::in_folder(PathBuf::from(folder));
    let kernels = set.kernels()?;
    let chunk = set.bytes(file)?;
    let bytes: usize = bytes.parse().context("BYTES")?;
    // A gfx9 header counts once: repeated it would be tokens.
    let header = if TraceFormat::of_first_chunk(&chunk).is_ok_and(|format| format.is_gfx9()) { 8 } else { 0 };
    let mut data = chunk[..header].to_vec();
    while data.len() + chunk.len() - header <= bytes || data.len() == header {
        data.extend_from_slice(&chunk[header..]);
    }
    let source = |pc: Pc, gfxip: u32| {
        let (size, text) = find_line(&kernels, pc.address, pc.code_object_id)?;
        Some(ProgramLine::from_text(gfxip, size, text))
    };
    let times: u32 = times.parse().context("TIMES")?;
    let mut fastest = f64::INFINITY;
    for _ in 0..times {
        let start = Instant::now();
        match mode.as_str() {
            "tokens" => black_box(run_tokens(&data)?),
            "quick" => black_box(scan(&TraceFormat::of_first_chunk(&data)?, &data, true).len()),
            "full" => black_box(run_records(source, &data, Options::default().records)?),
            "occupancy" => black_box(run_records(source, &data, RecordSet::of(&[RecordKind::Occupancy]))?),
            mode => bail!("{mode} is no mode"),
        };
        fastest = fastest.min(start.elapsed().as_secs_f64());
    }
    println!("{} bytes, {:.0} MB/s in the fastest run", data.len(), data.len() as f64 / 1e6 / fastest);
    Ok(())
}

/// Decodes to records of some kinds; returns how many blocks of them.
fn run_records(source: impl InstructionSource, data: &[u8], records: RecordSet) -> Result<usize> {
    let mut count = 0;
    let options = Options { records, ..Options::default() };
    Decoder::new(source, options).decode(data, &mut |record: Record<'_>| {
        count += 1;
        black_box(&record);
    })?;
    Ok(count)
}

/// Goes over all tokens; the sum keeps the compiler from leaving them out.
fn run_tokens(data: &[u8]) -> Result<usize> {
    let sum = |sum: u64, token: Token| sum.wrapping_add(token.kind as u64 + token.time as u64);
    Ok(Tokens::new(data)?.fold(0, sum) as usize)
}
