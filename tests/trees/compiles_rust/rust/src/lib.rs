//! An extension module by hand: what bindings would bring are crates that take long to compile.

use std::ffi::{c_char, c_int, c_void, CString};
use std::ptr::{addr_of_mut, null, null_mut};

/// `PyModuleDef` of CPython.
#[repr(C)]
struct Definition {
    references: isize,
    base: [*mut c_void; 4],
    name: *const c_char,
    doc: *const c_char,
    size: isize,
    rest: [*mut c_void; 5],
}

extern "C" {
    fn PyModule_Create2(definition: *mut Definition, version: c_int) -> *mut c_void;
    fn PyModule_AddStringConstant(module: *mut c_void, name: *const c_char, value: *const c_char) -> c_int;
}

const API_VERSION: c_int = 1013;

static mut DEFINITION: Definition = Definition {
    references: 1,
    base: [null_mut(); 4],
    name: c"native".as_ptr(),
    doc: null(),
    size: -1,
    rest: [null_mut(); 5],
};

#[no_mangle]
pub extern "C" fn PyInit_native() -> *mut c_void {
    let text = CString::new(itoa::Buffer::new().format(u64::MAX)).expect("digits alone");
    unsafe {
        let module = PyModule_Create2(addr_of_mut!(DEFINITION), API_VERSION);
        if module.is_null() || PyModule_AddStringConstant(module, c"LARGEST".as_ptr(), text.as_ptr()) != 0 {
            return null_mut();
        }
        module
    }
}
