package commands

import "fmt"

// Size is a number of bytes for people.
func Size(n int64) string {
	v, unit := float64(n), "B"
	for _, next := range []string{"kB", "MB", "GB", "TB"} {
		if v < 999.5 && v > -999.5 {
			break
		}
		v, unit = v/1000, next
	}
	if unit == "B" || v >= 99.95 || v <= -99.95 {
		return fmt.Sprintf("%.0f %s", v, unit)
	}
	return fmt.Sprintf("%.1f %s", v, unit)
}
