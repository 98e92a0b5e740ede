//! Code-object readers, executables and their symbols.

use std::ffi::{c_char, c_int, c_void};

use hsa_sys::*;

use crate::face::code::{Reader, Symbol, SymbolKind};
use crate::face::error::{Failure, Outcome, proceed, status};
use crate::face::out::{array, put, put_bytes, text};
use crate::face::runtime::current;

const INVALID_NAME: Failure = Failure(HSA_STATUS_ERROR_INVALID_SYMBOL_NAME);

/// What ROCr demands of a kernel's arguments (executable.cpp).
const KERNARG_ALIGNMENT: u32 = 16;

#[doc = hsa_contract!()]
pub(in crate::face) unsafe extern "C-unwind" fn hsa_code_object_reader_create_from_file(
    file: c_int,
    code_object_reader: *mut hsa_code_object_reader_t,
) -> hsa_status_t {
    // SAFETY: null or writable, as HSA demands.
    status(unsafe { create_file_reader(file, None, code_object_reader) })
}

/// # Safety
/// `reader` is null or writable.
pub(super) unsafe fn create_file_reader(
    file: c_int,
    part: Option<(u64, u64)>,
    reader: *mut hsa_code_object_reader_t,
) -> Outcome {
    let runtime = current()?;
    if reader.is_null() {
        return Err(Failure::ARGUMENT);
    }
    let handle = runtime.code.add_reader(Reader::from_file(file, part)?);
    // SAFETY: not null, writable by the precondition.
    unsafe { put(reader, handle) }
}

#[doc = hsa_contract!()]
pub(in crate::face) unsafe extern "C-unwind" fn hsa_code_object_reader_create_from_memory(
    code_object: *const c_void,
    size: usize,
    code_object_reader: *mut hsa_code_object_reader_t,
) -> hsa_status_t {
    status(current().and_then(|runtime| {
        if code_object.is_null() || code_object_reader.is_null() {
            return Err(Failure::ARGUMENT);
        }
        // SAFETY: `size` readable bytes, as HSA demands.
        let bytes = unsafe { array(code_object.cast::<u8>(), size) }?;
        let reader = Reader::from_memory(code_object.addr() as u64, bytes)?;
        // SAFETY: not null, and writable as HSA demands.
        unsafe { put(code_object_reader, runtime.code.add_reader(reader)) }
    }))
}

#[doc = hsa_contract!()]
pub(in crate::face) unsafe extern "C-unwind" fn hsa_code_object_reader_destroy(
    code_object_reader: hsa_code_object_reader_t,
) -> hsa_status_t {
    status(current().and_then(|runtime| runtime.code.remove_reader(code_object_reader)))
}

#[doc = hsa_contract!()]
pub(in crate::face) unsafe extern "C-unwind" fn hsa_executable_create(
    profile: hsa_profile_t,
    executable_state: hsa_executable_state_t,
    _options: *const c_char,
    executable: *mut hsa_executable_t,
) -> hsa_status_t {
    let frozen = executable_state == HSA_EXECUTABLE_STATE_FROZEN;
    // SAFETY: null or writable, as HSA demands.
    status(unsafe { create(profile, HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT, frozen, executable) })
}

#[doc = hsa_contract!()]
pub(in crate::face) unsafe extern "C-unwind" fn hsa_executable_create_alt(
    profile: hsa_profile_t,
    default_float_rounding_mode: hsa_default_float_rounding_mode_t,
    _options: *const c_char,
    executable: *mut hsa_executable_t,
) -> hsa_status_t {
    // SAFETY: null or writable, as HSA demands.
    status(unsafe { create(profile, default_float_rounding_mode, false, executable) })
}

/// # Safety
/// `executable` is null or writable.
unsafe fn create(
    profile: hsa_profile_t,
    rounding: hsa_default_float_rounding_mode_t,
    frozen: bool,
    executable: *mut hsa_executable_t,
) -> Outcome {
    let runtime = current()?;
    let known = [HSA_PROFILE_BASE, HSA_PROFILE_FULL].contains(&profile);
    if executable.is_null() || !known {
        return Err(Failure::ARGUMENT);
    }
    // SAFETY: not null, writable by the precondition.
    unsafe { put(executable, runtime.code.create_executable(profile, rounding, frozen)) }
}

#[doc = hsa_contract!()]
pub(in crate::face) unsafe extern "C-unwind" fn hsa_executable_destroy(
    executable: hsa_executable_t,
) -> hsa_status_t {
    status(current().and_then(|runtime| runtime.code.destroy_executable(executable)))
}

#[doc = hsa_contract!()]
pub(in crate::face) unsafe extern "C-unwind" fn hsa_executable_load_agent_code_object(
    executable: hsa_executable_t,
    agent: hsa_agent_t,
    code_object_reader: hsa_code_object_reader_t,
    _options: *const c_char,
    loaded_code_object: *mut hsa_loaded_code_object_t,
) -> hsa_status_t {
    status(current().and_then(|runtime| {
        let (_, gpu) = runtime.agents.find_gpu(agent)?;
        let loaded = runtime.code.load(executable, (agent, gpu.agent.target), code_object_reader)?;
        if loaded_code_object.is_null() {
            return Ok(());
        }
        // SAFETY: not null, and writable as HSA demands.
        unsafe { put(loaded_code_object, loaded) }
    }))
}

#[doc = hsa_contract!()]
pub(in crate::face) unsafe extern "C-unwind" fn hsa_executable_freeze(
    executable: hsa_executable_t,
    _options: *const c_char,
) -> hsa_status_t {
    status(current().and_then(|runtime| runtime.code.executable(executable)?.freeze()))
}

#[doc = hsa_contract!()]
pub(in crate::face) unsafe extern "C-unwind" fn hsa_executable_get_info(
    executable: hsa_executable_t,
    attribute: hsa_executable_info_t,
    value: *mut c_void,
) -> hsa_status_t {
    status(current().and_then(|runtime| {
        let executable = runtime.code.executable(executable)?;
        let state = match executable.is_frozen() {
            true => HSA_EXECUTABLE_STATE_FROZEN,
            false => HSA_EXECUTABLE_STATE_UNFROZEN,
        };
        let number = match attribute {
            HSA_EXECUTABLE_INFO_PROFILE => executable.profile.0,
            HSA_EXECUTABLE_INFO_STATE => state.0,
            HSA_EXECUTABLE_INFO_DEFAULT_FLOAT_ROUNDING_MODE => executable.rounding.0,
            _ => return Err(Failure::ARGUMENT),
        };
        // SAFETY: null or large enough for the attribute, as HSA demands.
        unsafe { put_bytes(value, &number.to_ne_bytes()) }
    }))
}

#[doc = hsa_contract!()]
pub(in crate::face) unsafe extern "C-unwind" fn hsa_executable_validate(
    executable: hsa_executable_t,
    result: *mut u32,
) -> hsa_status_t {
    status(current().and_then(|runtime| {
        runtime.code.executable(executable)?;
        // SAFETY: null or writable, as HSA demands. What was loaded is valid.
        unsafe { put(result, 0) }
    }))
}

#[doc = hsa_contract!()]
pub(in crate::face) unsafe extern "C-unwind" fn hsa_executable_validate_alt(
    executable: hsa_executable_t,
    _options: *const c_char,
    result: *mut u32,
) -> hsa_status_t {
    // SAFETY: passed on as they came.
    unsafe { hsa_executable_validate(executable, result) }
}

#[doc = hsa_contract!()]
pub(in crate::face) unsafe extern "C-unwind" fn hsa_executable_get_symbol_by_name(
    executable: hsa_executable_t,
    symbol_name: *const c_char,
    agent: *const hsa_agent_t,
    symbol: *mut hsa_executable_symbol_t,
) -> hsa_status_t {
    // SAFETY: one agent unless null, as HSA demands.
    let agent = (!agent.is_null()).then(|| unsafe { agent.read() });
    // SAFETY: a terminated string and a writable symbol, or null, as HSA demands.
    status(unsafe { find_symbol(executable, symbol_name, agent, symbol) })
}

#[doc = hsa_contract!()]
pub(in crate::face) unsafe extern "C-unwind" fn hsa_executable_get_symbol(
    executable: hsa_executable_t,
    _module_name: *const c_char,
    symbol_name: *const c_char,
    agent: hsa_agent_t,
    _call_convention: i32,
    symbol: *mut hsa_executable_symbol_t,
) -> hsa_status_t {
    // SAFETY: a terminated string and a writable symbol, or null, as HSA demands.
    status(unsafe { find_symbol(executable, symbol_name, Some(agent), symbol) })
}

/// # Safety
/// `name` is null or a terminated string; `symbol` is null or writable.
unsafe fn find_symbol(
    executable: hsa_executable_t,
    name: *const c_char,
    agent: Option<hsa_agent_t>,
    symbol: *mut hsa_executable_symbol_t,
) -> Outcome {
    let runtime = current()?;
    // SAFETY: null or terminated by the precondition.
    let name = unsafe { text(name) }?;
    let symbols = runtime.code.executable(executable)?.symbols(agent);
    let found = symbols.iter().find(|symbol| symbol.name == name).ok_or(INVALID_NAME)?;
    // SAFETY: null or writable by the precondition.
    unsafe { put(symbol, hsa_executable_symbol_t { handle: found.handle }) }
}

#[doc = hsa_contract!()]
pub(in crate::face) unsafe extern "C-unwind" fn hsa_executable_symbol_get_info(
    executable_symbol: hsa_executable_symbol_t,
    attribute: hsa_executable_symbol_info_t,
    value: *mut c_void,
) -> hsa_status_t {
    status(current().and_then(|runtime| {
        let symbol = runtime.code.symbol(executable_symbol)?;
        let common = common_info(&symbol, attribute);
        let bytes = common.or_else(|| match symbol.kind {
            SymbolKind::Kernel { .. } => kernel_info(&symbol, attribute),
            SymbolKind::Variable { bytes, is_const } => variable_info(&symbol, bytes, is_const, attribute),
        });
        // SAFETY: null or large enough for the attribute, as HSA demands.
        unsafe { put_bytes(value, &bytes.ok_or(Failure::ARGUMENT)?) }
    }))
}

fn common_info(symbol: &Symbol, attribute: hsa_executable_symbol_info_t) -> Option<Vec<u8>> {
    Some(match attribute {
        HSA_EXECUTABLE_SYMBOL_INFO_TYPE => match symbol.kind {
            SymbolKind::Kernel { .. } => HSA_SYMBOL_KIND_KERNEL.0.to_ne_bytes().to_vec(),
            SymbolKind::Variable { .. } => HSA_SYMBOL_KIND_VARIABLE.0.to_ne_bytes().to_vec(),
        },
        HSA_EXECUTABLE_SYMBOL_INFO_NAME_LENGTH => (symbol.name.len() as u32).to_ne_bytes().to_vec(),
        // Not terminated: the length is asked for apart.
        HSA_EXECUTABLE_SYMBOL_INFO_NAME => symbol.name.clone().into_bytes(),
        HSA_EXECUTABLE_SYMBOL_INFO_MODULE_NAME_LENGTH => 0_u32.to_ne_bytes().to_vec(),
        HSA_EXECUTABLE_SYMBOL_INFO_MODULE_NAME => Vec::new(),
        HSA_EXECUTABLE_SYMBOL_INFO_AGENT => symbol.agent.handle.to_ne_bytes().to_vec(),
        HSA_EXECUTABLE_SYMBOL_INFO_LINKAGE => HSA_SYMBOL_LINKAGE_PROGRAM.0.to_ne_bytes().to_vec(),
        HSA_EXECUTABLE_SYMBOL_INFO_IS_DEFINITION => vec![1],
        _ => return None,
    })
}

fn kernel_info(symbol: &Symbol, attribute: hsa_executable_symbol_info_t) -> Option<Vec<u8>> {
    let SymbolKind::Kernel { kernarg_bytes, group_bytes, private_bytes, dynamic_stack } = symbol.kind else {
        return None;
    };
    let number = match attribute {
        HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT => return Some(symbol.address.to_ne_bytes().to_vec()),
        HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_DYNAMIC_CALLSTACK => return Some(vec![u8::from(dynamic_stack)]),
        HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_KERNARG_SEGMENT_SIZE => kernarg_bytes,
        HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_KERNARG_SEGMENT_ALIGNMENT => KERNARG_ALIGNMENT,
        HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_GROUP_SEGMENT_SIZE => group_bytes,
        HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_PRIVATE_SEGMENT_SIZE => private_bytes,
        HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_CALL_CONVENTION => 0,
        _ => return None,
    };
    Some(number.to_ne_bytes().to_vec())
}

fn variable_info(
    symbol: &Symbol,
    bytes: u64,
    is_const: bool,
    attribute: hsa_executable_symbol_info_t,
) -> Option<Vec<u8>> {
    Some(match attribute {
        HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_ADDRESS => symbol.address.to_ne_bytes().to_vec(),
        HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_SIZE => (bytes as u32).to_ne_bytes().to_vec(),
        HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_ALLOCATION => {
            HSA_VARIABLE_ALLOCATION_AGENT.0.to_ne_bytes().to_vec()
        }
        HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_SEGMENT if is_const => {
            HSA_VARIABLE_SEGMENT_READONLY.0.to_ne_bytes().to_vec()
        }
        HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_SEGMENT => HSA_VARIABLE_SEGMENT_GLOBAL.0.to_ne_bytes().to_vec(),
        HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_IS_CONST => vec![u8::from(is_const)],
        _ => return None,
    })
}

type SymbolCallback = Option<
    unsafe extern "C-unwind" fn(hsa_executable_t, hsa_executable_symbol_t, *mut c_void) -> hsa_status_t,
>;
type AgentSymbolCallback = Option<
    unsafe extern "C-unwind" fn(
        hsa_executable_t,
        hsa_agent_t,
        hsa_executable_symbol_t,
        *mut c_void,
    ) -> hsa_status_t,
>;

#[doc = hsa_contract!()]
pub(in crate::face) unsafe extern "C-unwind" fn hsa_executable_iterate_symbols(
    executable: hsa_executable_t,
    callback: SymbolCallback,
    data: *mut c_void,
) -> hsa_status_t {
    status(current().and_then(|runtime| {
        let callback = callback.ok_or(Failure::ARGUMENT)?;
        runtime.code.executable(executable)?.symbols(None).iter().try_for_each(|symbol| {
            let symbol = hsa_executable_symbol_t { handle: symbol.handle };
            // SAFETY: the caller passed the callback for this call and this data.
            proceed(unsafe { callback(executable, symbol, data) })
        })
    }))
}

#[doc = hsa_contract!()]
pub(in crate::face) unsafe extern "C-unwind" fn hsa_executable_iterate_agent_symbols(
    executable: hsa_executable_t,
    agent: hsa_agent_t,
    callback: AgentSymbolCallback,
    data: *mut c_void,
) -> hsa_status_t {
    status(current().and_then(|runtime| {
        let callback = callback.ok_or(Failure::ARGUMENT)?;
        runtime.agents.find(agent)?;
        runtime.code.executable(executable)?.symbols(Some(agent)).iter().try_for_each(|symbol| {
            let symbol = hsa_executable_symbol_t { handle: symbol.handle };
            // SAFETY: the caller passed the callback for this call and this data.
            proceed(unsafe { callback(executable, agent, symbol, data) })
        })
    }))
}

#[doc = hsa_contract!()]
pub(in crate::face) unsafe extern "C-unwind" fn hsa_executable_iterate_program_symbols(
    executable: hsa_executable_t,
    callback: SymbolCallback,
    _data: *mut c_void,
) -> hsa_status_t {
    // Every symbol belongs to an agent.
    status(current().and_then(|runtime| {
        callback.ok_or(Failure::ARGUMENT)?;
        runtime.code.executable(executable).map(drop)
    }))
}
