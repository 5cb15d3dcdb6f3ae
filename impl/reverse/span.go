package reverse

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// maxPort is the last of all ports.
const maxPort = 1<<16 - 1

// Span is ports of a network.
type Span struct {
	Prefix      netip.Prefix
	First, Last uint16 // both are in it; 1 and 65535: all ports
}

// AllPorts is each port of a network.
func AllPorts(network netip.Prefix) Span { return Span{network, 1, maxPort} }

// Validate reports what is wrong with a span.
func (s Span) Validate() error {
	switch {
	case !s.Prefix.IsValid() || s.Prefix.Addr().Is4In6():
		return fmt.Errorf("network %q: want a network as in 10.244.0.0/16 or fd00:1::/64", s.Prefix)
	case s.Prefix != s.Prefix.Masked():
		return fmt.Errorf("network %s: want %s, the address of the network", s.Prefix, s.Prefix.Masked())
	case s.First == 0 || s.Last < s.First:
		return fmt.Errorf("ports %d to %d of %s: want the first one above 0, and the last one not before it", s.First,
			s.Last, s.Prefix)
	}
	return nil
}

// Has reports whether a span is valid and an address with its port is in it.
func (s Span) Has(a netip.AddrPort) bool {
	return s.Validate() == nil && s.Prefix.Contains(a.Addr()) && s.First <= a.Port() && a.Port() <= s.Last
}

// Compare orders spans by network, then by ports.
func (s Span) Compare(o Span) int {
	return cmp.Or(s.Prefix.Compare(o.Prefix), cmp.Compare(s.First, o.First), cmp.Compare(s.Last, o.Last))
}

// String is the network, and behind a colon its ports if these are not all: 10.0.9.7/32, fd00:1::/64:8080 or
// 10.244.0.0/16:8000-8100.
func (s Span) String() string {
	switch {
	case s.First == 1 && s.Last == maxPort:
		return s.Prefix.String()
	case s.First == s.Last:
		return fmt.Sprintf("%s:%d", s.Prefix, s.First)
	}
	return fmt.Sprintf("%s:%d-%d", s.Prefix, s.First, s.Last)
}

// ParseSpan reads a valid span, as String writes it and in no other way.
func ParseSpan(text string) (Span, error) {
	fail := func() (Span, error) {
		return Span{}, fmt.Errorf("%.80q: want a network and its ports, as in 10.244.0.0/16:8000-8100, fd00:1::/64:8080 or, "+
			"for all ports, 10.0.9.7/32", text)
	}
	address, rest, _ := strings.Cut(text, "/")
	bits, ports, some := strings.Cut(rest, ":")
	network, err := netip.ParsePrefix(address + "/" + bits)
	if err != nil {
		return fail()
	}
	s := AllPorts(network)
	if some {
		first, last, several := strings.Cut(ports, "-")
		if !several {
			last = first
		}
		from, err := strconv.ParseUint(first, 10, 16)
		if err != nil {
			return fail()
		}
		to, err := strconv.ParseUint(last, 10, 16)
		if err != nil {
			return fail()
		}
		s.First, s.Last = uint16(from), uint16(to)
	}
	if err := s.Validate(); err != nil {
		return Span{}, err
	}
	if form := s.String(); form != text {
		return Span{}, fmt.Errorf("%.80q: want it as %s", text, form)
	}
	return s, nil
}

// MarshalText implements encoding.TextMarshaler: String.
func (s Span) MarshalText() ([]byte, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	return []byte(s.String()), nil
}

// UnmarshalText implements encoding.TextUnmarshaler: Parse.
func (s *Span) UnmarshalText(text []byte) (err error) {
	*s, err = ParseSpan(string(text))
	return err
}

// MergedSpans is all spans in order, those together whose ports touch or overlap in one network. A network that is
// inside another one stays.
func MergedSpans(all []Span) (out []Span) {
	for _, s := range slices.SortedFunc(slices.Values(all), Span.Compare) {
		if i := len(out) - 1; i >= 0 && out[i].Prefix == s.Prefix && int(s.First) <= int(out[i].Last)+1 {
			out[i].Last = max(out[i].Last, s.Last)
		} else {
			out = append(out, s)
		}
	}
	return out
}
