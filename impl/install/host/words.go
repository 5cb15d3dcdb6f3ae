package host

import (
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"
)

const blank = " \t\n\r"

// words splits a value as systemd does: at blanks, with quotes of both kinds around any part of a word, and with
// escapes as in C. What follows a backslash and is no escape stays as it is.
func words(text string) (all []string, err error) {
	var b strings.Builder
	in, quote := false, byte(0)
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && i+1 < len(text):
			n := unescape(&b, text[i+1:])
			in, i = true, i+n
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			b.WriteByte(c)
		case c == '"' || c == '\'':
			in, quote = true, c
		case strings.IndexByte(blank, c) >= 0:
			if in {
				all = append(all, b.String())
				b.Reset()
			}
			in = false
		default:
			in = true
			b.WriteByte(c)
		}
	}
	if quote != 0 {
		return nil, errors.New("a quote is not closed")
	}
	if in {
		all = append(all, b.String())
	}
	return all, nil
}

// escapes are those of one letter.
var escapes = map[byte]byte{
	'a': '\a', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t', 'v': '\v', '\\': '\\', '"': '"', '\'': '\'',
	's': ' ',
}

// unescape writes what an escape means that begins behind a backslash, and says how many bytes it has.
func unescape(b *strings.Builder, text string) int {
	if c, ok := escapes[text[0]]; ok {
		b.WriteByte(c)
		return 1
	}
	digits, base, from := 0, 16, 1
	switch text[0] {
	case 'x':
		digits = 2
	case 'u':
		digits = 4
	case 'U':
		digits = 8
	case '0', '1', '2', '3':
		digits, base, from = 3, 8, 0
	}
	if digits > 0 && len(text) >= from+digits {
		n, err := strconv.ParseUint(text[from:from+digits], base, 32)
		switch {
		case err != nil || n == 0: // no string of a process has it
		case text[0] == 'u' || text[0] == 'U':
			if r := rune(n); utf8.ValidRune(r) { //nolint:gosec // 32 bits
				b.WriteRune(r)
				return from + digits
			}
		default:
			b.WriteByte(byte(n))
			return from + digits
		}
	}
	b.WriteByte('\\')
	b.WriteByte(text[0])
	return 1
}

// isName reports whether a word can be that of a variable.
func isName(s string) bool {
	for i := range len(s) {
		c := s[i]
		if c != '_' && (c|0x20 < 'a' || c|0x20 > 'z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

// fileVariables reads a file of EnvironmentFile=. Its rules are other ones than those of a unit: one variable a line,
// quotes count where the value begins, and a backslash inside double quotes only before what a shell escapes there.
func fileVariables(text string, set func(name, value string)) {
	for text != "" {
		text = strings.TrimLeft(text, blank)
		line, _, _ := strings.Cut(text, "\n")
		name, _, ok := strings.Cut(line, "=")
		if !ok || line[0] == '#' || line[0] == ';' {
			text = text[len(line):]
			continue
		}
		var value string
		value, text = fileValue(text[len(name)+1:])
		if name = strings.TrimRight(name, blank); isName(name) {
			set(name, value)
		}
	}
}

// fileValue reads a value up to the end of its line, and gives what follows.
func fileValue(text string) (value, rest string) {
	var b strings.Builder
	quote, begun, keep := byte(0), false, 0 // keep: the length behind which there are only blanks
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quote != 0 && c == quote:
			quote, begun, keep = 0, false, b.Len()
		case quote == '\'':
			b.WriteByte(c)
		case quote == '"' && c == '\\' && i+1 < len(text):
			i++
			if strings.IndexByte("\"\\`$\n", text[i]) < 0 {
				b.WriteByte('\\')
			}
			if text[i] != '\n' {
				b.WriteByte(text[i])
			}
		case quote == '"':
			b.WriteByte(c)
		case c == '\n' || c == '\r':
			return b.String()[:keep], text[i:]
		case c == '\\' && i+1 < len(text):
			i++
			if begun = true; text[i] != '\n' {
				b.WriteByte(text[i])
				keep = b.Len()
			}
		case !begun && (c == '"' || c == '\''):
			quote = c
		case !begun && strings.IndexByte(blank, c) >= 0:
		default:
			b.WriteByte(c)
			if begun = true; strings.IndexByte(blank, c) < 0 {
				keep = b.Len()
			}
		}
	}
	if quote != 0 {
		keep = b.Len()
	}
	return b.String()[:keep], ""
}
