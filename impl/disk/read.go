package disk

import (
	"fmt"
	"io"
	"os"
)

// ReadFile reads a small file: one of more than that many bytes is an error, of which no more is read.
func ReadFile(path string, most int) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, int64(most)+1))
	if err != nil {
		return nil, err
	}
	if len(text) > most {
		return nil, fmt.Errorf("read %s: it has more than %d bytes, which is the most that it may have", path, most)
	}
	return text, nil
}
