package process

import (
	"io"
	"os"
	"strings"
)

// BootIDFile has another text after each start of this machine: see random(4).
const BootIDFile = "/proc/sys/kernel/random/boot_id"

const maxBootID = 256 // bytes

// BootID is what the first of some files says that can be read; "": none can.
func BootID(files ...string) string {
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			continue
		}
		text, err := io.ReadAll(io.LimitReader(f, maxBootID))
		_ = f.Close()
		if id := strings.TrimSpace(string(text)); err == nil && id != "" {
			return id
		}
	}
	return ""
}
