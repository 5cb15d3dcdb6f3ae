package moved

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Bounds of a statement.
const (
	MaxPods = 512      // more than a node may have
	MaxText = 64 << 10 // bytes
)

// Reached are the versions that relays have reached, of EndpointSlices, Endpoints and Pods; 0: there is none.
type Reached [3]uint64

// covers reports whether relays have all that others had at some versions. What one of the two has not does not count.
func (r Reached) covers(at Reached) bool {
	for i, v := range at {
		if r[i] > 0 && r[i] < v {
			return false
		}
	}
	return true
}

// Statement is what the hub of a node says of its pods.
type Statement struct {
	Node   string
	Number uint64 // of the contents: it grows with each change, also over restarts of the hub
	Beat   uint64 // grows with each statement, also over restarts
	// Same says that the contents are those of Number, which the reader has. Then there are no corrections.
	Same        bool
	At          Reached      // of pods that are not corrected the cloud's slices say what is true at these versions
	Corrections []Correction // by uid, one for each

	Age time.Duration // for how long the desk has had it. It is no part of what is signed
}

// NewStatement makes one of corrections in any order. left are those that were left out for lack of room.
func NewStatement(node string, number, beat uint64, corrections []Correction) (s Statement, left int) {
	s = Statement{Node: node, Number: number, Beat: beat, Corrections: slices.Clone(corrections)}
	slices.SortStableFunc(s.Corrections, func(a, b Correction) int { return cmp.Compare(a.UID, b.UID) })
	s.Corrections = slices.CompactFunc(s.Corrections, func(a, b Correction) bool { return a.UID == b.UID })
	all := len(s.Corrections)
	s.Corrections = s.Corrections[:min(all, MaxPods)]
	return s, all - len(s.Corrections)
}

// Owns reports whether a pod is one that the node may correct.
func (s Statement) Owns(pod *corev1.Pod) bool { return pod.Spec.NodeName == s.Node }

// Says reports whether two statements have the same contents.
func (s Statement) Says(o Statement) bool {
	return slices.EqualFunc(s.Corrections, o.Corrections, Correction.equal)
}

// Again is the statement that says no more than that the node lives, and nothing has changed.
func (s Statement) Again(beat uint64) Statement {
	return Statement{Node: s.Node, Number: s.Number, Beat: beat, Same: true}
}

// String is the statement as it is signed and passed on: node, number, beat, then "same", or @ and a version, and
// corrections.
func (s Statement) String() string {
	text := append([]byte(s.Node), ' ')
	text = append(strconv.AppendUint(text, s.Number, 36), ' ')
	text = strconv.AppendUint(text, s.Beat, 36)
	if s.Same {
		return string(text) + " same"
	}
	if s.At != (Reached{}) {
		text = append(text, ' ')
		for i, v := range s.At {
			text = strconv.AppendUint(append(text, "@,,"[i]), v, 36)
		}
	}
	for _, c := range s.Corrections {
		text = c.appendText(append(text, ' '))
	}
	return string(text)
}

// ParseStatement reads one. Its errors name the field.
func ParseStatement(text string) (s Statement, err error) {
	fail := func(field string, err error) (Statement, error) {
		return Statement{}, fmt.Errorf("statement: %s: %w", field, err)
	}
	if len(text) > MaxText {
		return fail("length", fmt.Errorf("%d bytes, want %d at most", len(text), MaxText))
	}
	fields := strings.SplitN(text, " ", MaxPods+5)
	if len(fields) < 3 {
		return fail("fields", fmt.Errorf("%d, want node, number, beat and corrections, with blanks between", len(fields)))
	}
	s.Node = fields[0]
	if len(s.Node) > validation.DNS1123SubdomainMaxLength || len(validation.IsDNS1123Subdomain(s.Node)) > 0 {
		return fail("node", fmt.Errorf("%.80q: want the name of a node", s.Node))
	}
	if s.Number, err = parseNumber(fields[1]); err != nil {
		return fail("number", err)
	}
	if s.Beat, err = parseNumber(fields[2]); err != nil {
		return fail("beat", err)
	}
	fields = fields[3:]
	if s.Same = len(fields) == 1 && fields[0] == "same"; s.Same {
		return s, nil
	}
	if len(fields) > 0 && strings.HasPrefix(fields[0], "@") {
		if s.At, err = parseReached(fields[0][1:]); err != nil {
			return fail("versions", err)
		}
		fields = fields[1:]
	}
	if len(fields) > MaxPods {
		return fail("corrections", fmt.Errorf("more than %d", MaxPods))
	}
	for i, f := range fields {
		c, err := parseCorrection(f)
		if err != nil {
			return fail("correction "+strconv.Itoa(i+1), err)
		}
		if i > 0 && c.UID <= s.Corrections[i-1].UID {
			return fail("correction "+strconv.Itoa(i+1), fmt.Errorf("uid: %s after %s: want each once, in order", c.UID,
				s.Corrections[i-1].UID))
		}
		s.Corrections = append(s.Corrections, c)
	}
	return s, nil
}

func parseReached(text string) (at Reached, err error) {
	all := strings.SplitN(text, ",", len(at)+1)
	if len(all) != len(at) {
		return at, fmt.Errorf("%.80q: want %d numbers with commas between", text, len(at))
	}
	for i, v := range all {
		if v == "0" {
			continue
		}
		if at[i], err = parseNumber(v); err != nil {
			return at, err
		}
	}
	if at == (Reached{}) {
		err = fmt.Errorf("%.80q: want none, or one above 0", text)
	}
	return at, err
}

func parseNumber(s string) (uint64, error) {
	n, err := strconv.ParseUint(s, 36, 64)
	if err == nil && (n == 0 || strconv.FormatUint(n, 36) != s) {
		err = errors.New("not in its shortest form, or zero")
	}
	if err != nil {
		return 0, fmt.Errorf("%.20q: want a number of base 36, from 1 to 2^64-1", s)
	}
	return n, nil
}
