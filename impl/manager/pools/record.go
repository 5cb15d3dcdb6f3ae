package pools

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Attributes are what a pool puts on its Nodes.
type Attributes struct {
	labels, annotations map[string]string
	taints              map[taintKey]string // value by key and effect
}

type taintKey struct {
	key    string
	effect corev1.TaintEffect
}

func (k taintKey) compare(o taintKey) int {
	return cmp.Or(cmp.Compare(k.key, o.key), cmp.Compare(k.effect, o.effect))
}

const (
	labelLine      = "label "
	annotationLine = "annotation "
	taintLine      = "taint "
)

// digest stands for the value of an annotation in a record: values may be long, and have lines.
func sum(value string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(value)))[:16] }

// record is the text of a Set in contract.PoolAttributes; "": it is empty.
func (s Attributes) record() string {
	var lines []string
	for k, v := range s.labels {
		lines = append(lines, labelLine+k+"="+v)
	}
	for k, v := range s.annotations {
		lines = append(lines, annotationLine+k+"="+sum(v))
	}
	for k, v := range s.taints {
		lines = append(lines, taintLine+k.key+"="+v+":"+string(k.effect))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// recorded reads a record. Of annotations it has digests. Lines that cannot be read were written by somebody else, and
// count for nothing.
func recorded(text string) Attributes {
	s := Attributes{map[string]string{}, map[string]string{}, map[taintKey]string{}}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		kind, rest, _ := strings.Cut(line, " ")
		key, value, ok := strings.Cut(rest, "=")
		if !ok || key == "" {
			continue
		}
		switch kind + " " {
		case labelLine:
			s.labels[key] = value
		case annotationLine:
			s.annotations[key] = value
		case taintLine:
			if value, effect, ok := strings.Cut(value, ":"); ok {
				s.taints[taintKey{key, corev1.TaintEffect(effect)}] = value
			}
		}
	}
	return s
}

// PutAnnotations are the keys of annotations in a record.
func PutAnnotations(text string) []string {
	return slices.Collect(maps.Keys(recorded(text).annotations))
}
