package repository

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Dagger stands behind a figure that no committed report holds yet. A document with one says so in a line that begins
// with it.
const Dagger = "†"

// figure is a number with a unit of what is measured.
type figure struct {
	text   string // as it stands in the document
	number float64
	digits int // behind the point
	dagger bool
}

// block is a paragraph, an item of a list or a row of a table.
type block struct {
	line  int
	text  string
	links []string // to files below reports/
}

// What makes a whole number a figure: a unit, or what a run counts.
const (
	units   = `ms|µs|s|min|seconds|minutes|hours|days|B|bytes|kB|KiB|MB|MiB|GB|%|kbit/s|Mbit/s|times`
	counted = `kills|failovers|elections|schedules|calls|lists|re-lists|violations|evictions|` +
		`attacks|mutants|bugs|specs|runs|events`
)

var (
	measured = regexp.MustCompile(`(?:^|[^\w.])((\d[\d,]*(?:\.\d+)?)(?:\s?(?:` + units + `|(?:[a-z-]+ )?(?:` + counted +
		`))(?:$|[^\w/])|(†?)(?:$|[^\w./-])))`)
	inCode   = regexp.MustCompile("`[^`]*`")
	linkTo   = regexp.MustCompile(`\]\(([^)#\s]+)(?:#[^)]*)?\)`)
	linkText = regexp.MustCompile(`\]\([^)]*\)`)
	item     = regexp.MustCompile(`^\s*(?:[-*] |\||\d+\. )`)
	number   = regexp.MustCompile(`\d[\d,]*(?:\.\d+)?(?:e[+-]\d+)?`)
	version  = regexp.MustCompile(`(?i)(?:\bv|HTTP/|Kubernetes |\bgo ?|TLS |OpenYurt[ ≤]*|\(v)[\d.]+(?: to v?[\d.]+)?`)
)

// blocks of a document in Markdown, at a path of the repository. Code stands for itself, and headings have no figures.
func blocks(doc, text string) (found []block) {
	var now block
	end := func() {
		if now.text != "" {
			for _, m := range linkTo.FindAllStringSubmatch(now.text, -1) {
				if to := path.Clean(path.Join(path.Dir(doc), m[1])); strings.HasPrefix(to, "reports/") {
					now.links = append(now.links, to)
				}
			}
			found = append(found, now)
		}
		now = block{}
	}
	fenced := false
	for i, line := range strings.Split(text, "\n") {
		switch trimmed := strings.TrimSpace(line); {
		case strings.HasPrefix(trimmed, "```"):
			end()
			fenced = !fenced
		case fenced || strings.HasPrefix(line, "    ") && now.text == "":
		case trimmed == "" || strings.HasPrefix(trimmed, "#"):
			end()
		default:
			if item.MatchString(line) {
				end()
			}
			if now.text == "" {
				now.line = i + 1
			}
			now.text += " " + trimmed
		}
	}
	end()
	return found
}

// figures of a block: numbers with a unit, and numbers with a point.
func (b block) figures() (found []figure) {
	text := version.ReplaceAllString(linkText.ReplaceAllString(inCode.ReplaceAllString(b.text, " "), "]"), " ")
	for text != "" {
		m := measured.FindStringSubmatchIndex(text)
		if m == nil {
			return found
		}
		digits := text[m[4]:m[5]]
		whole := strings.TrimSpace(text[m[2]:m[3]])
		unit := strings.Trim(whole[len(digits):], " ,.;:()|*†]")
		f := figure{
			text:   strings.TrimSpace(digits + " " + unit),
			dagger: strings.HasPrefix(strings.TrimLeft(text[m[5]:], " "+unit), Dagger),
		}
		f.number, f.digits = parse(digits)
		if unit != "" || f.digits > 0 {
			found = append(found, f)
		}
		text = text[m[5]:]
	}
	return found
}

func parse(s string) (v float64, digits int) {
	v, _ = strconv.ParseFloat(strings.ReplaceAll(s, ",", ""), 64)
	if _, behind, ok := strings.Cut(s, "."); ok {
		digits = len(behind)
	}
	return v, digits
}

// holds reports whether a report has a number that is the figure, rounded as the document rounds.
func (f figure) holds(report string) bool {
	scale := math.Pow(10, float64(f.digits))
	return slices.ContainsFunc(number.FindAllString(report, -1), func(s string) bool {
		v, digits := parse(s)
		if strings.Contains(s, "e") { // three digits of bytes, which a document may write in kB or MB
			return slices.ContainsFunc([]float64{1, 1e3, 1e6},
				func(unit float64) bool { return math.Round(v/unit*scale) == math.Round(f.number*scale) })
		}
		return digits >= f.digits && math.Round(v*scale) == math.Round(f.number*scale)
	})
}

// all stands in a register for each figure of a document that tells of settings and limits only.
const all = "*"

// register is what figures are that no report holds: by document and text, where they stand instead.
type register map[[2]string]string

// parseRegister reads lines of document, figure, kind and place, with tabs between.
func parseRegister(data string) (register, error) {
	r := register{}
	for i, line := range strings.Split(data, "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.Split(line, "\t")
		if len(f) != 3 {
			return nil, fmt.Errorf("line %d: %q: want a document, a figure and the file that sets it, with tabs between", i+1,
				line)
		}
		r[[2]string{f[0], f[1]}] = f[2]
	}
	return r, nil
}

// unfounded are the figures of a document that stand in no report that their block links to, are not in the register,
// and have no dagger. It notes the entries of the register that it used.
func unfounded(root, doc, text string, set register, used map[[2]string]bool) (problems []string) {
	daggers := false
	for _, b := range blocks(doc, text) {
		var reports string
		for _, l := range b.links {
			data, err := reportText(root, l)
			if err != nil {
				problems = append(problems, fmt.Sprintf("%s:%d: %v", doc, b.line, err))
			}
			reports += data
		}
		for _, f := range b.figures() {
			key := [2]string{doc, f.text}
			switch {
			case f.dagger:
				daggers = true
			case f.holds(reports):
			case set[key] != "":
				used[key] = true
			case set[[2]string{doc, all}] != "":
				used[[2]string{doc, all}] = true
			default:
				problems = append(problems, fmt.Sprintf("%s:%d: %s stands in no report that is linked beside it (%s)", doc, b.line,
					f.text, strings.Join(b.links, ", ")))
			}
		}
	}
	if daggers && !strings.Contains(text, "\n"+Dagger+" ") {
		problems = append(problems, fmt.Sprintf("%s: a figure has %s, and no line says what that means", doc, Dagger))
	}
	return problems
}

// reportText is a report, or the summaries of a folder of them.
func reportText(root, name string) (string, error) {
	full := filepath.Join(root, filepath.FromSlash(name))
	info, err := os.Stat(full)
	if err != nil {
		return "", err
	}
	if !info.IsDir() {
		data, err := os.ReadFile(full)
		return string(data), err
	}
	var text strings.Builder
	err = filepath.WalkDir(full, func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(p, ".md") {
			return err
		}
		data, err := os.ReadFile(p)
		text.Write(data)
		return err
	})
	if err == nil && text.Len() == 0 {
		err = errors.New(name + " has no summary")
	}
	return text.String(), err
}
