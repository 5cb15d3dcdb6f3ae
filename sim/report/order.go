package report

import (
	"slices"
	"strings"
)

// distinct returns the non-empty keys of list, once each: those of first, if they occur, then the others sorted.
func distinct[T any](list []T, key func(T) string, first ...string) []string {
	seen := map[string]bool{}
	var rest []string
	for _, x := range list {
		if k := key(x); k != "" && !seen[k] {
			seen[k] = true
			if !slices.Contains(first, k) {
				rest = append(rest, k)
			}
		}
	}
	slices.SortFunc(rest, compareNames)
	var all []string
	for _, k := range first {
		if seen[k] {
			all = append(all, k)
		}
	}
	return append(all, rest...)
}

// compareNames orders names as a person does: edge-2 before edge-10.
func compareNames(a, b string) int {
	for a != "" && b != "" {
		da, db := leadingDigits(a), leadingDigits(b)
		switch {
		case da > 0 && db > 0:
			na, nb := strings.TrimLeft(a[:da], "0"), strings.TrimLeft(b[:db], "0")
			if len(na) != len(nb) {
				return len(na) - len(nb)
			}
			if na != nb {
				return strings.Compare(na, nb)
			}
			a, b = a[da:], b[db:]
		case a[0] != b[0]:
			return int(a[0]) - int(b[0])
		default:
			a, b = a[1:], b[1:]
		}
	}
	return len(a) - len(b)
}

func leadingDigits(s string) int {
	n := 0
	for n < len(s) && '0' <= s[n] && s[n] <= '9' {
		n++
	}
	return n
}
