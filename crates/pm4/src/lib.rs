//! PM4 packets and registers of AMD GPUs, encoded and decoded
