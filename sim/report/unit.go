package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Unit says how a number is written.
type Unit string

// The units of metrics and facts.
const (
	UnitCount   Unit = ""
	UnitRatio   Unit = "ratio"
	UnitShare   Unit = "share" // of 1; written in per cent
	UnitBytes   Unit = "bytes"
	UnitSeconds Unit = "seconds"
	UnitBits    Unit = "bit/s"
)

// unitsNote is stated on every report.
const unitsNote = "Decimal units: 1 kB = 1000 bytes, 1 MB = 1000 kB."

// none stands where there is no number.
const none = "–"

// Format writes v for a person, in three significant digits or so.
func (u Unit) Format(v float64) string {
	if !isFinite(v) {
		return none
	}
	switch u {
	case UnitRatio:
		return ratio(v)
	case UnitShare:
		return significant(v*100) + " %"
	case UnitBytes:
		return scaled(v, "B")
	case UnitBits:
		return scaled(v, "bit/s")
	case UnitSeconds:
		return seconds(v)
	default:
		if v == math.Trunc(v) && math.Abs(v) < 1e15 {
			return count(int64(v))
		}
		return significant(v)
	}
}

// scaled writes v with the prefix of a thousand that leaves one to three digits before the point.
func scaled(v float64, unit string) string {
	prefixes := []string{"", "k", "M", "G", "T", "P"}
	i := 0
	for ; math.Abs(v) >= 999.5 && i < len(prefixes)-1; i++ {
		v /= 1000
	}
	if i == 0 {
		return strconv.FormatFloat(v, 'f', 0, 64) + " " + unit
	}
	return significant(v) + " " + prefixes[i] + unit
}

// significant writes three digits, or all before the point, without trailing zeros.
func significant(v float64) string {
	if math.Abs(v) >= 1e15 {
		return strconv.FormatFloat(v, 'g', 3, 64)
	}
	decimals := 2
	for limit := 9.995; decimals > 0 && math.Abs(v) >= limit; limit *= 10 {
		decimals--
	}
	if math.Abs(v) < 0.095 && v != 0 {
		return strconv.FormatFloat(v, 'g', 2, 64)
	}
	s := strconv.FormatFloat(v, 'f', decimals, 64)
	if decimals > 0 {
		s = strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
	}
	if math.Abs(v) >= 1e4 {
		return count(int64(math.Round(v)))
	}
	return s
}

// ratio writes enough digits to hold 1.008 against 1.02.
func ratio(v float64) string {
	decimals := 3
	switch {
	case !isFinite(v):
		return none
	case math.Abs(v) >= 100:
		return significant(v)
	case math.Abs(v) >= 10:
		decimals = 1
	}
	return strconv.FormatFloat(v, 'f', decimals, 64)
}

// times writes how many times a is b.
func times(a, b int64) string {
	if b <= 0 {
		return none
	}
	return ratio(float64(a) / float64(b))
}

func seconds(v float64) string {
	switch {
	case !isFinite(v):
		return none
	case v == 0:
		return "0 s"
	case math.Abs(v) < 0.0995:
		return significant(math.Round(v*1e5)/100) + " ms"
	case math.Abs(v) < 600:
		return significant(v) + " s"
	case math.Abs(v) > 1e9:
		return strconv.FormatFloat(v, 'g', 3, 64) + " s"
	}
	whole := int64(math.Round(v))
	if whole < 7200 {
		return fmt.Sprintf("%d min %d s", whole/60, whole%60)
	}
	return fmt.Sprintf("%d h %d min", whole/3600, whole%3600/60)
}

// kilobytes writes n in whole kB, so that a column of them is compared by its width.
func kilobytes(n int64) string {
	switch {
	case n == 0:
		return "0"
	case n > 0 && n < 500:
		return "< 1"
	}
	return count(int64(math.Round(float64(n) / 1000)))
}

// count writes n with commas between thousands.
func count(n int64) string {
	digits := strconv.FormatInt(n, 10)
	sign := ""
	if n < 0 {
		sign, digits = "-", digits[1:]
	}
	var b strings.Builder
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	return sign + b.String()
}

// plural writes a count with its noun.
func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return count(int64(n)) + " " + many
}
