package report

import (
	"strings"
	"unicode"
)

// mdText escapes s so that Markdown shows it as it is, on one line, also within a table.
func mdText(s string) string {
	var b strings.Builder
	for _, r := range oneLine(s) {
		switch r {
		case '\\', '`', '*', '_', '[', ']', '<', '>', '|', '~', '#', '$':
			b.WriteByte('\\')
		case '&':
			b.WriteString("&amp;")
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// mdCode writes s as a code span, also within a table.
func mdCode(s string) string {
	s = oneLine(s)
	if s == "" {
		return ""
	}
	if strings.ContainsRune(s, '|') {
		// A table ends a cell at a bar even within a code span.
		return mdText(s)
	}
	fence := strings.Repeat("`", longestRun(s, '`')+1)
	if len(fence) > 1 {
		return fence + " " + s + " " + fence
	}
	return fence + s + fence
}

// mdBlock writes s as a fenced block of code.
func mdBlock(language, s string) string {
	s = strings.Map(func(r rune) rune {
		if r != '\n' && unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\ufffd"))
	fence := strings.Repeat("`", max(3, longestRun(s, '`')+1))
	return fence + language + "\n" + strings.Trim(s, "\n") + "\n" + fence + "\n"
}

// oneLine makes s a single line of printable text.
func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\ufffd"))
	return strings.TrimSpace(s)
}

func longestRun(s string, of rune) int {
	longest, run := 0, 0
	for _, r := range s {
		if r == of {
			run++
			longest = max(longest, run)
		} else {
			run = 0
		}
	}
	return longest
}
