//! The program of a set, as lines of disassembly.

use std::collections::HashMap;
use std::path::PathBuf;

/// A kernel: where it is loaded, and its lines by offset from there.
#[derive(Debug)]
pub struct Kernel {
    /// Address of its code object.
    pub load_address: u64,
    /// Bytes that the code object spans.
    pub load_size: u64,
    /// Id of the code object in the stream.
    pub code_object_id: u64,
    /// The code object, where the set has it.
    pub code_object: Option<PathBuf>,
    /// Size in bytes and text by offset.
    pub lines: HashMap<u64, (u32, String)>,
}

/// Size and text of the instruction at a program counter: absolute addresses (id 0) by load address, others by id.
pub fn find_line(kernels: &[Kernel], address: u64, code_object_id: u64) -> Option<(u32, &str)> {
    let (kernel, offset) = if code_object_id == 0 {
        let holds = |kernel: &&Kernel| {
            address.checked_sub(kernel.load_address).is_some_and(|offset| offset < kernel.load_size)
        };
        let kernel = kernels.iter().find(holds)?;
        (kernel, address - kernel.load_address)
    } else {
        (kernels.iter().find(|kernel| kernel.code_object_id == code_object_id)?, address)
    };
    kernel.lines.get(&offset).map(|(size, text)| (*size, text.as_str()))
}

/// Lines of a table: offset, size and text, separated by tabs.
pub(crate) fn parse_lines(text: &str) -> Option<HashMap<u64, (u32, String)>> {
    let line = |line: &str| {
        let mut columns = line.splitn(3, '\t');
        let offset = columns.next()?.parse().ok()?;
        let size = columns.next()?.parse().ok()?;
        Some((offset, (size, columns.next().unwrap_or_default().to_owned())))
    };
    text.lines().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absolute_addresses_go_by_load_address_and_others_by_id() {
        let lines = parse_lines("0\t4\ts_nop 0\n4\t8\tv_add_f32 v0, v1, v2\n").unwrap();
        let kernel =
            Kernel { load_address: 4096, load_size: 64, code_object_id: 7, code_object: None, lines };
        let kernels = [kernel];
        assert_eq!(find_line(&kernels, 4100, 0), Some((8, "v_add_f32 v0, v1, v2")));
        assert_eq!(find_line(&kernels, 0, 7), Some((4, "s_nop 0")));
        assert_eq!(find_line(&kernels, 4096 + 64, 0), None);
        assert_eq!(find_line(&kernels, 0, 8), None);
        assert!(parse_lines("x\t4\ts_nop 0").is_none());
    }
}
