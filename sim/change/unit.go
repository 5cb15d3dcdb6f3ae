package change

import (
	"fmt"
	"math"
	"strings"
)

// Format writes a value for a person: bytes up to 100 kB as they are, since each counts.
func Format(v float64, unit string) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "–"
	}
	switch unit {
	case "B":
		switch a := math.Abs(v); {
		case a >= 1e8:
			return trim(v/1e6, 1) + " MB"
		case a >= 1e6:
			return trim(v/1e6, 3) + " MB"
		case a >= 1e5:
			return trim(v/1e3, 1) + " kB"
		}
		return trim(v, 1) + " B"
	case "s":
		switch a := math.Abs(v); {
		case a < 1e-3:
			return trim(v*1e6, 1) + " µs"
		case a < 1:
			return trim(v*1e3, 2) + " ms"
		}
		return trim(v, 2) + " s"
	case "":
		return trim(v, 2)
	}
	return trim(v, 4)
}

func trim(v float64, decimals int) string {
	s := fmt.Sprintf("%.*f", decimals, v)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	if s == "-0" {
		s = "0"
	}
	return s
}

// Delta writes how far a figure is from what it was: counts and bytes as they are, with the share behind.
func (l Line) Delta() string {
	d := l.After - l.Before
	sign := "+"
	if d < 0 {
		sign = "−"
	}
	share := ""
	if s := l.Share(); !math.IsInf(s, 0) {
		share = fmt.Sprintf("%s%s %%", sign, trim(math.Abs(100*s), 1))
	}
	if l.Kind == Time || l.Unit == "ratio" {
		return share
	}
	text := sign + Format(math.Abs(d), l.Unit)
	if share != "" && l.Kind != Count {
		text += " (" + share + ")"
	}
	return text
}
