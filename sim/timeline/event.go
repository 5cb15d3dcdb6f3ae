package timeline

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"
)

// Schema names the form of the lines; it is in the first event of every timeline.
const Schema = "weir.timeline/1"

// MaxLine bounds one line in bytes, its newline included.
const MaxLine = 1 << 20

// Lane says what an event is about.
type Lane string

// The lanes of a timeline.
const (
	Link     Lane = "link"
	Leader   Lane = "leader"
	Cache    Lane = "cache"
	Client   Lane = "client"
	Workload Lane = "workload"
	Fault    Lane = "fault"
	Phase    Lane = "phase"
	Proc     Lane = "proc"
)

// Lanes returns all lanes, in the order in which they are shown.
func Lanes() []Lane {
	return []Lane{Phase, Fault, Workload, Link, Leader, Cache, Client, Proc}
}

// Event is one line of a timeline. Writer sets At.
type Event struct {
	At      time.Duration      `json:"t"`
	Lane    Lane               `json:"lane"`
	Way     string             `json:"way,omitempty"`
	Node    string             `json:"node,omitempty"`
	Class   string             `json:"class,omitempty"`
	Name    string             `json:"event"`
	Numbers map[string]float64 `json:"num,omitempty"`
	Strings map[string]string  `json:"str,omitempty"`
}

func (e *Event) validate() error {
	switch {
	case !slices.Contains(Lanes(), e.Lane):
		return fmt.Errorf("lane %q is not one of %v", e.Lane, Lanes())
	case e.Name == "":
		return errors.New("event has no name")
	case e.At < 0:
		return fmt.Errorf("time %d is before the start", e.At)
	case e.Name == openEvent && e.Strings["schema"] != Schema:
		return fmt.Errorf("schema %q is not %q: read it with the version of weir that wrote it", e.Strings["schema"], Schema)
	}
	return nil
}

// encode appends e and a newline to buf.
func (e *Event) encode(buf *bytes.Buffer) error {
	if err := e.validate(); err != nil {
		return err
	}
	e.spellNonFinite()
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(e); err != nil {
		return err
	}
	if buf.Len() > MaxLine {
		return fmt.Errorf("event %q takes %d bytes, more than %d", e.Name, buf.Len(), MaxLine)
	}
	return nil
}

// spellNonFinite moves numbers that JSON has no form for to Strings, on copies of the caller's maps.
func (e *Event) spellNonFinite() {
	finite := true
	for _, v := range e.Numbers {
		finite = finite && !math.IsNaN(v) && !math.IsInf(v, 0)
	}
	if finite {
		return
	}
	numbers, strings := maps.Clone(e.Numbers), maps.Clone(e.Strings)
	if strings == nil {
		strings = map[string]string{}
	}
	for k, v := range e.Numbers {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			delete(numbers, k)
			strings[k] = strconv.FormatFloat(v, 'g', -1, 64)
		}
	}
	e.Numbers, e.Strings = numbers, strings
}

// decode reads one line without its newline. It returns io.ErrUnexpectedEOF if line is the beginning of an event.
func decode(line []byte) (Event, error) {
	var e Event
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&e); err != nil {
		if errors.Is(err, io.EOF) {
			return e, errors.New("empty line")
		}
		return e, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return e, errors.New("more than one value in the line")
	}
	if err := e.validate(); err != nil {
		return e, err
	}
	if len(e.Numbers) == 0 {
		e.Numbers = nil
	}
	if len(e.Strings) == 0 {
		e.Strings = nil
	}
	return e, nil
}
