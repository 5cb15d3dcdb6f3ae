package report

import "strings"

// String is one line about a machine.
func (m Machine) String() string {
	var parts []string
	if m.CPUs > 0 {
		parts = append(parts, plural(m.CPUs, "CPU", "CPUs"))
	}
	if m.CPU != "" {
		parts = append(parts, m.CPU)
	}
	if m.MemoryBytes > 0 {
		parts = append(parts, UnitBytes.Format(float64(m.MemoryBytes))+" of memory")
	}
	if m.OS != "" {
		parts = append(parts, m.OS)
	}
	if m.Kernel != "" {
		parts = append(parts, m.Kernel)
	}
	return strings.Join(parts, ", ")
}

func (r Result) startedText() string {
	if r.Started.IsZero() {
		return ""
	}
	return r.Started.UTC().Format("2006-01-02 15:04:05 UTC")
}
