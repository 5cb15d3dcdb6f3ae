package node

import (
	"os"
	"os/exec"
	"path/filepath"

	"github.com/weir-edge/weir/impl/cli"
)

// findHub looks beside this program first: both come in one archive.
func findHub() (string, error) {
	if self, err := os.Executable(); err == nil {
		if beside := filepath.Join(filepath.Dir(self), "weir-hub"); exists(beside) {
			return beside, nil
		}
	}
	if path, err := exec.LookPath("weir-hub"); err == nil {
		return filepath.Abs(path)
	}
	return "", cli.Usage("--hub-binary", "", "the path of weir-hub: it is neither beside this program nor in PATH")
}

func exists(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
