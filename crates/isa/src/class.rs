//! The classes in which the thread-trace stitcher sees instructions.
//!
//! A trace names no opcodes, only what kind of unit issued an instruction. [`InstructionClass`] is the other side of
//! that match. AMD's public decoder derives it from disassembly text by a letter tree of prefixes
//! (`projects/rocprof-trace-decoder/source/trie.cpp` in ROCm/rocm-systems); the rules are kept to the letter, since
//! its results are what the records must equal: `s_dcache_inv` is scalar memory because `s_dcache` ends first, and
//! `s_memtime` is scalar ALU because no prefix names it.

use self::InstructionClass::{Bvh, Flat, Immediate, Lds, Salu, Skip, Smem, Vmem};

/// What the stitcher takes an instruction for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum InstructionClass {
    /// Not known: passed over without a trace instruction.
    Unknown,
    /// Never in a trace: passed over (`s_delay_alu`, `s_wait_alu`, `s_set_vgpr_msb`, …).
    Skip,
    /// Scalar memory.
    Smem,
    /// Scalar ALU, and every scalar instruction that nothing else names.
    Salu,
    /// Vector memory: buffer, image, global, scratch.
    Vmem,
    /// Flat memory.
    Flat,
    /// Local data share.
    Lds,
    /// Vector ALU.
    Valu,
    /// Relative branch, conditional or not.
    Branch,
    /// Handled at issue: waits, barriers, `s_nop`, `s_sendmsg`, `s_endpgm`, …
    Immediate,
    /// Ray intersection.
    Bvh,
    /// gfx9 barrier, which may show as a message and an immediate.
    Barrier9,
    /// gfx9 `v_mfma_scale_*`.
    MfmaScale,
    /// gfx12 `v_mov_b64`.
    Mov64,
}

/// Prefixes in byte order, each with its class. A prefix that starts with another one of the list can never be
/// reached; it is kept so that the list reads like the public one.
const PREFIXES: &[(&str, InstructionClass)] = &[
    ("buffer_a", Vmem),
    ("buffer_d", Vmem),
    ("buffer_g", Vmem),
    ("buffer_i", Vmem),
    ("buffer_l", Vmem),
    ("buffer_nop", Skip),
    ("buffer_p", Vmem),
    ("buffer_s", Vmem),
    ("buffer_w", Vmem),
    ("cluster_", Vmem),
    ("dds_", Vmem),
    ("ds_", Lds),
    ("flat_", Flat),
    ("global_", Vmem),
    ("image_a", Vmem),
    ("image_bvh", Bvh),
    ("image_g", Vmem),
    ("image_l", Vmem),
    ("image_m", Vmem),
    ("image_s", Vmem),
    ("lds_", Lds),
    ("s_abs", Salu),
    ("s_add", Salu),
    ("s_and", Salu),
    ("s_ash", Salu),
    ("s_atc", Smem),
    ("s_atomic", Smem),
    ("s_barrie", Immediate),
    ("s_bcnt", Salu),
    ("s_bf", Salu),
    ("s_bit", Salu),
    ("s_brev", Salu),
    ("s_buffer", Smem),
    ("s_call", Salu),
    ("s_clause", Immediate),
    ("s_cls", Salu),
    ("s_cmov", Salu),
    ("s_cmp", Salu),
    ("s_cselect", Salu),
    ("s_ctz", Salu),
    ("s_cvt", Salu),
    ("s_dcache", Smem),
    ("s_dcache_inv", Immediate),
    ("s_decperflvl", Immediate),
    ("s_delay", Skip),
    ("s_denorm", Salu),
    ("s_endpgm", Immediate),
    ("s_f", Salu),
    ("s_get_pc", Salu),
    ("s_getpc", Salu),
    ("s_getreg", Salu),
    ("s_icache_inv", Immediate),
    ("s_incperflvl", Immediate),
    ("s_inst_prefetch", Immediate),
    ("s_load", Smem),
    ("s_lsh", Salu),
    ("s_max", Salu),
    ("s_memrealtime", Smem),
    ("s_min", Salu),
    ("s_monitor", Immediate),
    ("s_mov", Salu),
    ("s_mul", Salu),
    ("s_nand", Salu),
    ("s_nop", Immediate),
    ("s_nor", Salu),
    ("s_not", Salu),
    ("s_or", Salu),
    ("s_pack", Salu),
    ("s_prefetch", Smem),
    ("s_quadmask", Salu),
    ("s_round", Salu),
    ("s_scratch", Smem),
    ("s_sendmsg", Immediate),
    ("s_set_inst", Immediate),
    ("s_set_pc", Salu),
    ("s_set_vgpr", Skip),
    ("s_sethalt", Immediate),
    ("s_setkill", Immediate),
    ("s_setpc", Salu),
    ("s_setprio ", Immediate),
    ("s_setprio_inc", Salu),
    ("s_setreg", Salu),
    ("s_setvskip", Immediate),
    ("s_sext", Salu),
    ("s_sleep", Immediate),
    ("s_store", Smem),
    ("s_sub", Salu),
    ("s_swap_pc", Salu),
    ("s_swappc", Salu),
    ("s_trap", Immediate),
    ("s_ttrace", Immediate),
    ("s_version", Immediate),
    ("s_wait_alu", Skip),
    ("s_wait_async", Immediate),
    ("s_wait_bvhcnt", Immediate),
    ("s_wait_dep", Skip),
    ("s_wait_dscnt", Immediate),
    ("s_wait_event", Immediate),
    ("s_wait_expcnt", Immediate),
    ("s_wait_idle", Immediate),
    ("s_wait_kmcnt", Immediate),
    ("s_wait_loadcnt", Immediate),
    ("s_wait_samplecnt", Immediate),
    ("s_wait_storecnt", Immediate),
    ("s_wait_tensor", Immediate),
    ("s_wait_xcnt", Immediate),
    ("s_waitcnt", Immediate),
    ("s_wakeup", Immediate),
    ("s_wqm", Salu),
    ("s_xnor", Salu),
    ("s_xor", Salu),
    ("scratch_", Vmem),
    ("tbuffer_", Vmem),
    ("tensor_", Vmem),
];

impl InstructionClass {
    /// Class of a line of disassembly (lower case, with or without operands) on a chip of this major graphics IP
    /// version, for callers that bring their own disassembler.
    ///
    /// ```
    /// use wavescope_isa::InstructionClass;
    ///
    /// assert_eq!(InstructionClass::of_text(11, "s_cbranch_scc0 4"), InstructionClass::Branch);
    /// assert_eq!(InstructionClass::of_text(9, "s_barrier"), InstructionClass::Barrier9);
    /// assert_eq!(InstructionClass::of_text(12, "s_barrier_wait 0xffff"), InstructionClass::Immediate);
    /// ```
    pub const fn of_text(gfxip: u8, text: &str) -> Self {
        Self::common(text.as_bytes()).on(gfxip, text.as_bytes())
    }

    /// Class where no generation is special.
    const fn common(text: &[u8]) -> Self {
        if contains(text, b"branch") {
            return Self::Branch;
        }
        if starts_with(text, b"v_") {
            return Self::Valu;
        }
        match walk(text) {
            Some(class) => class,
            None if starts_with(text, b"s_") => Salu,
            None => Self::Unknown,
        }
    }

    /// What this class of `text` is on a generation.
    const fn on(self, gfxip: u8, text: &[u8]) -> Self {
        match (gfxip, self) {
            (9, Self::Valu) if starts_with(text, b"v_mfma_scale_") => Self::MfmaScale,
            (9, Immediate) if starts_with(text, b"s_barrier") => Self::Barrier9,
            (12, Self::Valu) if starts_with(text, b"v_mov_b64") => Self::Mov64,
            (12, Lds) if starts_with(text, b"ds_bvh") => Bvh,
            _ => self,
        }
    }
}

impl InstructionClass {
    /// Class of an opcode by its bare name, where no generation is special. Operands never complete a prefix that a
    /// name leaves open, but for the space behind `s_setprio` and, in pixel shaders of gfx11, `exp dual_src_blend0`.
    pub(crate) const fn of_name(name: &str) -> Self {
        if starts_with(name.as_bytes(), b"s_setprio") && name.len() == "s_setprio".len() {
            return Immediate;
        }
        // The shortest way for most names, since this runs at compile time: no vector ALU opcode is a branch.
        if starts_with(name.as_bytes(), b"v_") { Self::Valu } else { Self::common(name.as_bytes()) }
    }

    /// Class of an opcode by its name on a generation; `self` is what [`of_name`](Self::of_name) gave.
    pub(crate) const fn of_name_on(self, gfxip: u8, name: &str) -> Self {
        self.on(gfxip, name.as_bytes())
    }
}

/// Walks the letter tree that [`PREFIXES`] spell: a letter without a branch at the current place is passed over, the
/// first complete prefix is the answer. The tree is never built: `low..high` are the prefixes below the place, all
/// equal in their first `depth` letters.
const fn walk(text: &[u8]) -> Option<InstructionClass> {
    let (mut low, mut high, mut depth) = (0, PREFIXES.len(), 0);
    let mut at = 0;
    while at < text.len() {
        let (below, above) = narrow(low, high, depth, text[at]);
        if below < above {
            (low, high) = (below, above);
            depth += 1;
            // Sorted: the prefix that ends here stands before its continuations.
            if PREFIXES[low].0.len() == depth {
                return Some(PREFIXES[low].1);
            }
        }
        at += 1;
    }
    None
}

/// The part of `low..high` whose letter number `depth` is `letter`.
const fn narrow(low: usize, high: usize, depth: usize, letter: u8) -> (usize, usize) {
    let first = first_from(low, high, depth, letter);
    // No UTF-8 text has the byte 255.
    (first, first_from(first, high, depth, letter.saturating_add(1)))
}

/// The first of `low..high` whose letter number `depth` is `letter` or a later one, by halving: the tables ask at
/// compile time, where each step is dear.
const fn first_from(mut low: usize, mut high: usize, depth: usize, letter: u8) -> usize {
    while low < high {
        let middle = (low + high) / 2;
        if PREFIXES[middle].0.as_bytes()[depth] < letter {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

/// Whether `text` begins with `prefix`.
pub(crate) const fn starts_with(text: &[u8], prefix: &[u8]) -> bool {
    text.len() >= prefix.len() && equal_at(text, prefix, 0)
}

/// Whether `text` has `part`, which is not empty, anywhere.
pub(crate) const fn contains(text: &[u8], part: &[u8]) -> bool {
    let mut at = 0;
    while at + part.len() <= text.len() {
        if text[at] == part[0] && equal_at(text, part, at) {
            return true;
        }
        at += 1;
    }
    false
}

/// Whether `part` stands in `text` at `at`; the caller has checked that it fits.
const fn equal_at(text: &[u8], part: &[u8], at: usize) -> bool {
    let mut index = 0;
    while index < part.len() {
        if text[at + index] != part[index] {
            return false;
        }
        index += 1;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_sorted_and_unique() {
        assert!(PREFIXES.is_sorted_by(|a, b| a.0 < b.0));
    }

    /// Upstream's letter tree built as one, to hold the tree-free walk against.
    fn tree_class(text: &str) -> Option<InstructionClass> {
        #[derive(Default)]
        struct Node {
            class: Option<InstructionClass>,
            children: std::collections::BTreeMap<u8, Node>,
        }
        let mut root = Node::default();
        for (prefix, class) in PREFIXES {
            let end = prefix.bytes().fold(&mut root, |node, letter| node.children.entry(letter).or_default());
            end.class = Some(*class);
        }
        let mut node = &root;
        for letter in text.bytes() {
            node = node.children.get(&letter).unwrap_or(node);
            if node.class.is_some() {
                return node.class;
            }
        }
        None
    }

    #[test]
    fn walk_equals_the_letter_tree() {
        let odd = [
            "s_decperflevel 1",
            "exp dual_src_blend0 v0",
            "s_dcache_inv",
            "s_setprio 1",
            "s_setprio_inc_wg 1",
        ];
        let plain = [
            "s_memtime s[0:1]",
            "tbuffer_load_format_x v0",
            "s_cselect_b32",
            "",
            "s",
            "global",
            "s_b s_uffer",
        ];
        for text in odd.into_iter().chain(plain).chain(PREFIXES.iter().map(|(prefix, _)| *prefix)) {
            assert_eq!(walk(text.as_bytes()), tree_class(text), "{text}");
        }
    }

    #[test]
    fn quirks_of_the_letter_tree_are_kept() {
        let class = |text| InstructionClass::of_text(11, text);
        assert_eq!(class("s_dcache_inv"), Smem);
        assert_eq!(class("s_setprio 2"), Immediate);
        assert_eq!(class("s_setprio_inc_wg 2"), Salu);
        assert_eq!(class("s_decperflevel 1"), Immediate); // the letters of "decperflvl", with gaps
        assert_eq!(class("s_memtime s[0:1]"), Salu);
        assert_eq!(class("exp mrt0 v0, v1, v2, v3"), InstructionClass::Unknown);
    }
}
