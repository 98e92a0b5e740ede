//! Vector ALU work by name: what is slower than one pass.

/// How a vector ALU instruction goes through the unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rate {
    Plain,
    /// Exponents, roots, reciprocals, angles.
    Transcendental,
    /// Shifts of 64 bits.
    Shift64,
    /// Multiplications of 32 bits with more than 24 that count.
    Multiply,
    Double,
    /// Compares that write the lanes' mask.
    CompareExec,
    /// Transcendentals with scalar operands (gfx12).
    Scalar,
    /// Matrix, with the number of passes.
    Matrix(u8),
}

pub(super) fn is_matrix(name: &str) -> bool {
    ["v_wmma", "v_swmmac", "v_mfma", "v_smfmac"].iter().any(|start| name.starts_with(start))
}

pub(super) fn rate(name: &str) -> Rate {
    if is_matrix(name) {
        return Rate::Matrix(passes(name));
    }
    let starts = |starts: &[&str]| starts.iter().any(|start| name.starts_with(start));
    if starts(&["v_cmpx"]) {
        Rate::CompareExec
    } else if starts(&["v_s_"]) {
        Rate::Scalar
    } else if name.contains("_f64") {
        Rate::Double
    } else if starts(&["v_exp_", "v_log_", "v_rcp_", "v_rsq_", "v_sqrt_", "v_sin_", "v_cos_"]) {
        Rate::Transcendental
    } else if starts(&["v_lshlrev_b64", "v_lshrrev_b64", "v_ashrrev_i64"]) {
        Rate::Shift64
    } else if starts(&["v_mad_u64", "v_mad_i64", "v_mad_co_", "v_mul_lo_u32", "v_mul_hi_"]) {
        Rate::Multiply
    } else {
        Rate::Plain
    }
}

/// Passes of a matrix instruction, from its shape and operand type: gfx12 captures have 8 for 16x16x16 of 8-bit
/// integers and 16 for 16-bit floats; on CDNA a tile of 32x32 takes twice as long as one of 16x16.
fn passes(name: &str) -> u8 {
    let narrow = name.contains("iu8") || name.contains("iu4") || name.contains("8f6f4");
    match (name.starts_with("v_mfma") || name.starts_with("v_smfmac"), name.contains("32x32")) {
        (true, true) => 16,
        (true, false) => 8,
        (false, _) if narrow => 8,
        (false, _) => 16,
    }
}
