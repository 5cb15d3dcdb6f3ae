package operator

import (
	"bytes"
	"regexp"
)

// removed stands in place of a secret.
const removed = "REMOVED"

// privateKey is one, over several lines.
var privateKey = regexp.MustCompile(`(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\z)`)

// tail is the end of one whose beginning was cut: the last lines of a log begin anywhere.
var tail = regexp.MustCompile(`-----(BEGIN|END) [A-Z ]*PRIVATE KEY-----`)

// maxKey bounds a key in a log, with what stands before each of its lines.
const maxKey = 16 << 10

// cutKey takes out the rest of a private key at the beginning of a text.
func cutKey(text []byte) []byte {
	at := tail.FindSubmatchIndex(text)
	if at == nil || string(text[at[2]:at[3]]) != "END" {
		return text
	}
	return append(append(bytes.Clone(text[:max(0, at[0]-maxKey)]), removed...), text[at[1]:]...)
}

// secrets are what looks like one in a line. The groups stay. A line without one of the words, in small letters, is not
// looked at: expressions are slow, and logs are long.
var secrets = []struct {
	words []string
	form  *regexp.Regexp
}{
	// a JSON web token.
	{[]string{"eyj"}, regexp.MustCompile(`()\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*`)},
	{[]string{"bearer"}, regexp.MustCompile(`(?i)(\bbearer\s+)[A-Za-z0-9._~+/-]{8,}=*`)},
	{[]string{"basic"}, regexp.MustCompile(`(?i)(\bbasic\s+)[A-Za-z0-9+/]{8,}=*`)},
	{[]string{"://"}, regexp.MustCompile(`(://[^/\s:@"]*:)[^/\s@"]+(@)`)},
	{
		[]string{"password", "passwd", "secret", "token", "key"},
		regexp.MustCompile(
			`(?i)(["']?[\w.-]*(?:password|passwd|secret|token|api[_-]?key|private[_-]?key|client-key-data)` +
				`["']?\s*[:=]\s*)"[^"\n]{4,}"`),
	},
	{
		[]string{"password", "passwd", "token", "key"},
		regexp.MustCompile(`(?i)(\b(?:password|passwd|token|api[_-]?key|client-key-data)\s*[:=]\s*)[^\s"',;{}\[\]]{8,}`),
	},
}

// bootstrap is a bootstrap token. Its first half is a name.
var bootstrap = regexp.MustCompile(`(\b[a-z0-9]{6}\.)[a-z0-9]{16}\b`)

// redact takes out what looks like a secret.
func redact(text []byte) []byte {
	if bytes.Contains(text, []byte("PRIVATE KEY")) {
		text = privateKey.ReplaceAll(cutKey(text), []byte(removed))
	}
	out := make([]byte, 0, len(text))
	for line := range bytes.Lines(text) {
		out = append(out, redactLine(line)...)
	}
	return out
}

func redactLine(line []byte) []byte {
	small := bytes.ToLower(line)
	for _, s := range secrets {
		for _, w := range s.words {
			if bytes.Contains(small, []byte(w)) {
				line = s.form.ReplaceAll(line, []byte("${1}"+removed+"${2}"))
				break
			}
		}
	}
	if hasToken(line) {
		line = bootstrap.ReplaceAll(line, []byte("${1}"+removed))
	}
	return line
}

// hasToken reports whether there may be a bootstrap token: a dot with six letters or digits before it and sixteen
// behind.
func hasToken(line []byte) bool {
	for i, b := range line {
		if b == '.' && i >= 6 && len(line)-i > 16 && plain(line[i-6:i]) && plain(line[i+1:i+17]) {
			return true
		}
	}
	return false
}

func plain(text []byte) bool {
	for _, b := range text {
		if (b < 'a' || b > 'z') && (b < '0' || b > '9') {
			return false
		}
	}
	return true
}
