package digest

import (
	"cmp"
	"strings"
)

// Bounds of words, in characters.
const (
	maxVersion = 32
	maxCause   = 16
)

// none stands for a cause, where there is none and images or edges follow.
const none = "-"

// cause is a cause as one word.
func cause(text string) string { return word(text[:min(len(text), maxCause)]) }

// word is a version as one word.
func word(version string) string {
	w, _, _ := strings.Cut(version, " ")
	w = strings.Map(func(r rune) rune {
		if plain(r) {
			return r
		}
		return -1
	}, w)
	return cmp.Or(w[:min(len(w), maxVersion)], none)
}

func plain(r rune) bool {
	return r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || strings.ContainsRune(".+-_", r)
}
