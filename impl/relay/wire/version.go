package wire

import (
	"fmt"
	"strconv"
)

// ParseVersion reads a resourceVersion as the number it is (KEP-5504). "" is 0.
func ParseVersion(s string) (uint64, error) {
	if s == "" {
		return 0, nil
	}
	v, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("resourceVersion %q is not a number (KEP-5504)", s)
	}
	return v, nil
}

// FormatVersion is the inverse of ParseVersion for versions above 0.
func FormatVersion(v uint64) string { return strconv.FormatUint(v, 10) }
