/* A library whose constructor does nothing to speak of. */
__attribute__((constructor)) static void stay(void) {}
