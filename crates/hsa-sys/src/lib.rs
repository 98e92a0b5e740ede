//! Raw bindings to HSA, its AMD extension, the API table, aqlprofile v2 and rocprofiler-register
