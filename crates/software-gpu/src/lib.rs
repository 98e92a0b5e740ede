//! A GPU in software: AQL queues, PM4, counters, waves and thread trace
