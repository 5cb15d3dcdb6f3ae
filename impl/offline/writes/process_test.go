package writes

// asHub makes the test binary be a hub's writes, for tests that need a process to kill.
const asHub = "WEIR_TEST_WRITES"

func runHub() {}
