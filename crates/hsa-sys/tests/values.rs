//! Values that need no library: names of statuses, bit-fields, words written at once.

#![cfg(test)]

use hsa_sys::{
    HSA_STATUS_ERROR_INVALID_AGENT, HSA_STATUS_ERROR_MEMORY_FAULT, HSA_STATUS_SUCCESS, HsaApiTable,
    amd_signal_t, aqlprofile_att_codeobj_data_t, aqlprofile_att_parameter_t, aqlprofile_buffer_desc_flags_t,
    hsa_kernel_dispatch_packet_t, hsa_status_t,
};

#[test]
fn a_status_prints_its_name_and_an_unknown_one_its_number() {
    assert_eq!(format!("{HSA_STATUS_SUCCESS:?}"), "HSA_STATUS_SUCCESS");
    assert_eq!(format!("{HSA_STATUS_ERROR_INVALID_AGENT:?}"), "HSA_STATUS_ERROR_INVALID_AGENT");
    assert_eq!(format!("{:?}", hsa_status_t(0xdead)), "hsa_status_t(0xdead)");
}

#[test]
fn statuses_of_the_amd_extension_are_statuses() {
    assert_eq!(HSA_STATUS_ERROR_MEMORY_FAULT, hsa_status_t(43));
}

#[test]
fn header_and_setup_share_the_word_that_is_written_last() {
    let mut packet = hsa_kernel_dispatch_packet_t::zeroed();
    (packet.header, packet.setup) = (0x1502, 0x0003);
    assert_eq!(packet.full_header(), 0x0003_1502);
}

#[test]
fn aqlprofile_bits_lie_where_the_library_reads_them() {
    // device_access bit 0, host_access bit 1, memory_hint bits 7:2 of one word.
    let mut flags = aqlprofile_buffer_desc_flags_t::zeroed();
    flags.set_device_access(1);
    flags.set_host_access(1);
    flags.set_memory_hint(3);
    assert_eq!(flags.raw, 0b1111);
    // counter_id bits 27:0, simd_mask bits 31:28.
    let mut parameter = aqlprofile_att_parameter_t::zeroed();
    parameter.set_counter_id(0x1234);
    parameter.set_simd_mask(0xf);
    assert_eq!(parameter.value, 0xf000_1234);
    let mut data = aqlprofile_att_codeobj_data_t::zeroed();
    data.set_from_start(1);
    assert_eq!((data.is_unload(), data.bits), (0, 2));
}

#[test]
fn a_doorbell_signal_shows_its_value_as_a_pointer() {
    let signal = amd_signal_t { value: 0x1000, ..amd_signal_t::zeroed() };
    assert_eq!(signal.hardware_doorbell_ptr() as usize, 0x1000);
}

#[test]
fn a_zeroed_table_has_no_functions() {
    let table = HsaApiTable::zeroed();
    assert!(table.core_.is_null() && table.amd_ext_.is_null());
    assert!(hsa_sys::CoreApiTable::default().hsa_init_fn.is_none());
}
