package scenario

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// reader goes through the nodes of one file and collects mistakes.
type reader struct {
	file     string
	mistakes []Mistake
}

// value is the value of a field, or of an item of a list. Its node is nil if the field is absent.
type value struct {
	r    *reader
	path string
	line int
	node *yaml.Node
}

// object is a mapping whose fields were checked.
type object struct {
	value
	fields map[string]value
}

func (v value) mistake(allowed string) {
	field := v.path
	if field == "" {
		field = "file"
	}
	v.r.mistakes = append(v.r.mistakes, Mistake{
		File: v.r.file, Line: v.line, Field: field, Value: v.text(), Allowed: allowed,
	})
}

// contradiction is a mistake of two fields, each of which would be right alone.
func (v value) contradiction(why string) {
	v.mistake("contradiction: " + why)
}

// text is the value as far as one line can show it.
func (v value) text() string {
	switch {
	case v.node == nil:
		return ""
	case v.node.Kind == yaml.MappingNode:
		return "a mapping"
	case v.node.Kind == yaml.AliasNode:
		return "an alias"
	case v.node.Kind == yaml.SequenceNode:
		return fmt.Sprintf("a list of %d", len(v.node.Content))
	}
	s := []rune(v.node.Value)
	if len(s) > 80 {
		s = append(s[:80], '…')
	}
	return string(s)
}

// absent reports whether a field has no value.
func (v value) absent() bool {
	return v.node == nil || v.node.Kind == yaml.ScalarNode && v.node.ShortTag() == "!!null"
}

// object reads a mapping with these fields and no others; ok is false if it is none.
func (v value) object(fields ...string) (o object, ok bool) {
	o = object{value: v, fields: map[string]value{}}
	if v.absent() || v.node.Kind != yaml.MappingNode {
		v.wrong("a mapping of " + strings.Join(fields, ", "))
		return o, false
	}
	for _, name := range fields {
		o.fields[name] = value{r: v.r, path: join(v.path, name), line: v.line}
	}
	for i := 0; i+1 < len(v.node.Content); i += 2 {
		key, content := v.node.Content[i], v.node.Content[i+1]
		at := value{r: v.r, path: join(v.path, value{node: key}.text()), line: key.Line, node: content}
		known, ok := o.fields[key.Value]
		switch {
		case key.Kind != yaml.ScalarNode || !ok:
			at.mistake("unknown field; want " + strings.Join(fields, ", ") + didYouMean(key.Value, fields))
		case known.node != nil:
			at.mistake(fmt.Sprintf("the field is there twice, also in line %d", known.line))
		default:
			if content.Kind == yaml.ScalarNode && content.Line > 0 && content.Style&(yaml.LiteralStyle|yaml.FoldedStyle) == 0 {
				at.line = content.Line
			}
			o.fields[key.Value] = at
		}
	}
	return o, true
}

// has reports whether the field is there.
func (o object) has(field string) bool { return !o.fields[field].absent() }

// list returns the items of a sequence.
func (v value) list(allowed string) []value {
	if v.absent() || v.node.Kind != yaml.SequenceNode {
		v.wrong(allowed)
		return nil
	}
	items := make([]value, 0, len(v.node.Content))
	for i, n := range v.node.Content {
		items = append(items, value{r: v.r, path: fmt.Sprintf("%s[%d]", v.path, i), line: n.Line, node: n})
	}
	return items
}

// scalar returns the value as it was written; ok is false if it is none of this type of YAML.
func (v value) scalar(allowed string, tags ...string) (s string, ok bool) {
	if !v.absent() && v.node.Kind == yaml.ScalarNode {
		if slices.Contains(tags, v.node.ShortTag()) {
			return v.node.Value, true
		}
	}
	if !v.absent() && v.node.Kind == yaml.ScalarNode && v.node.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0 {
		allowed += ", without quotes"
	}
	v.wrong(allowed)
	return "", false
}

func (v value) wrong(allowed string) {
	if v.absent() {
		v.node = nil
		v.mistake("missing; want " + allowed)
		return
	}
	v.mistake("want " + allowed)
}

// str reads a string.
func (v value) str(allowed string) (string, bool) { return v.scalar(allowed, "!!str") }

// integer reads a number of a range, in plain decimal digits.
func (v value) integer(from, to int64) (int64, bool) {
	allowed := fmt.Sprintf("a whole number from %d to %d", from, to)
	s, ok := v.scalar(allowed, "!!int")
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < from || n > to || strconv.FormatInt(n, 10) != s {
		v.wrong(allowed)
		return 0, false
	}
	return n, true
}

// count reads a number from 1 on.
func (v value) count(to int) int {
	n, _ := v.integer(1, int64(to))
	return int(n)
}

// boolean reads true or false.
func (v value) boolean() bool {
	const allowed = "true or false"
	s, ok := v.scalar(allowed, "!!bool")
	if ok && s != "true" && s != "false" {
		v.wrong(allowed)
	}
	return s == "true"
}

// number reads a number of a range.
func (v value) number(from, to float64) (float64, bool) {
	allowed := fmt.Sprintf("a number from %v to %v", from, to)
	s, ok := v.scalar(allowed, "!!int", "!!float")
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseFloat(s, 64)
	if err != nil || !(n >= from && n <= to) || strings.ContainsAny(s, "_xXpP") {
		v.wrong(allowed)
		return 0, false
	}
	return n, true
}

func join(path, field string) string {
	if path == "" {
		return field
	}
	return path + "." + field
}
