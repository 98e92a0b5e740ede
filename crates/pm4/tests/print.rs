//! The printer on command buffers of upstream's library.

use wavescope_pm4::{IpBases, RegisterMap, Target, print};

#[expect(clippy::unwrap_used, reason = "the texts are literals of this file")]
fn lines(target: Target, hex: &str) -> Vec<String> {
    let map = RegisterMap::with_fixed_bases(target);
    let dwords = print::dwords_from_hex(hex).unwrap();
    print::CommandBuffer::new(&map, &dwords).to_string().lines().map(str::to_owned).collect()
}

// The read buffer of one GRBM counter on gfx90a, as aqlprofile 7.2.4 wrote it.
const GFX90A_READ: &str = "c00179000000180800000401c001790000000200e0000000c000460000000407\
    c001790000000200e0000000c001790000000200e0000000c0044000020025000000d040000000001000000000002100\
    c0044000020025000000d041000000001000000400002100c001790000000200e0000000\
    c005580028c400000000000100000000001000000000002100000010";

#[test]
fn a_read_buffer_names_registers_and_fields() {
    let lines = lines(Target::Gfx90a, GFX90A_READ);
    let expected = [
        "   0 SET_UCONFIG_REG CP_PERFMON_CNTL[0d808] = 00000401 PERFMON_STATE=0x1 PERFMON_SAMPLE_ENABLE=0x1",
        "   3 SET_UCONFIG_REG GRBM_GFX_INDEX[0c200] = e0000000 SE=* SA=* INSTANCE=*",
        "   6 EVENT_WRITE 00000407 CS_PARTIAL_FLUSH TYPE=0x7 INDEX=4",
        "   8 SET_UCONFIG_REG GRBM_GFX_INDEX[0c200] = e0000000 SE=* SA=* INSTANCE=*",
        "  11 SET_UCONFIG_REG GRBM_GFX_INDEX[0c200] = e0000000 SE=* SA=* INSTANCE=*",
        "  14 COPY_DATA ctl=02002500 reg GRBM_PERFCOUNTER0_LO[0d040] -> mem 0x210010000000",
        "  20 COPY_DATA ctl=02002500 reg GRBM_PERFCOUNTER0_HI[0d041] -> mem 0x210010000004",
        "  26 SET_UCONFIG_REG GRBM_GFX_INDEX[0c200] = e0000000 SE=* SA=* INSTANCE=*",
        "  29 ACQUIRE_MEM 0x210010000000 +0x100 CP_COHER_CNTL=28c40000 POLL_INTERVAL=16",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn bodies_of_pred_exec_are_indented_and_dies_named() {
    // PRED_EXEC for XCC 0 around a write to RPB's control on die 2, then the broadcast selection.
    let hex = "c0002300 01000006 c0044000 00000005 10000000 00000000 80000d07 00000001 \
               c0017900 00000200 e0000000";
    let lines = lines(Target::Gfx942, hex);
    assert_eq!(lines[0], "   0 PRED_EXEC XCC_MASK=01, next 6 dwords");
    let write = "   2   COPY_DATA ctl=00000005 imm 10000000 -> reg RPB_PERFCOUNTER_RSLT_CNTL[00d07]@die2";
    assert_eq!(lines[1], write);
    assert!(lines[2].starts_with("   8 SET_UCONFIG_REG"));
}

#[test]
fn trace_values_are_taken_apart_by_generation() {
    // The control register's value of a gfx1100 trace start.
    let lines = lines(Target::Gfx1100, "c0017900 000019ec a0423941");
    assert!(lines[0].contains("SQ_THREAD_TRACE_CTRL[0d9ec]"), "{}", lines[0]);
    assert!(lines[0].contains(" MODE=0x1 HIWATER=0x5 SPI_STALL_EN=0x1 SQ_STALL_EN=0x1 UTIL_TIMER=0x1"));
}

#[test]
fn discovered_bases_move_names_with_them() {
    let map = RegisterMap::new(Target::Gfx1201, IpBases::new(&[0x1280, 0xA100], &[0xC40]));
    let dwords = print::dwords_from_hex("c0017900 00000300 e0000000").unwrap();
    let text = print::CommandBuffer::new(&map, &dwords).to_string();
    assert!(text.contains("GRBM_GFX_INDEX[0c300]"), "{text}");
}

#[test]
fn malformed_dwords_are_lines_of_their_own() {
    let lines = lines(Target::Gfx90a, "00000000 c0004600 00000407");
    assert!(lines[0].starts_with("   0 malformed: dword 0: 0x00000000"), "{}", lines[0]);
    assert!(lines[1].starts_with("   1 EVENT_WRITE"));
}

#[test]
fn hex_that_stops_inside_a_dword_is_refused() {
    assert!(print::dwords_from_hex("c000460").is_err());
    assert_eq!(print::dwords_from_hex("c00046xx").unwrap_err().position, 6);
    assert_eq!(print::dwords_from_bytes(&[0x07, 0x04, 0, 0, 0xFF]), [0x407]);
}
