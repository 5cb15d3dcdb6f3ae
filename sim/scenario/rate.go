package scenario

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
)

// Rate is a number of bits per second; 0 is unlimited.
type Rate int64

const (
	minRate   Rate = 1000
	maxRate   Rate = 100_000_000_000
	rateHelp       = "a rate from 1kbit/s to 100Gbit/s as 8Mbit/s, in bit/s, kbit/s, Mbit/s or Gbit/s, or unlimited"
	unlimited      = "unlimited"
)

// rateUnits are in descending order.
var rateUnits = [...]struct {
	name string
	bits Rate
}{{"Gbit/s", 1_000_000_000}, {"Mbit/s", 1_000_000}, {"kbit/s", 1000}, {"bit/s", 1}}

var ratePattern = regexp.MustCompile(`^([0-9]{1,15}(?:\.[0-9]{1,9})?) ?([A-Za-z/]+)$`)

// parseRate reads what String writes.
func parseRate(s string) (Rate, error) {
	if s == unlimited {
		return 0, nil
	}
	m := ratePattern.FindStringSubmatch(s)
	if m == nil {
		return 0, fmt.Errorf("want %s", rateHelp)
	}
	for _, u := range rateUnits {
		if u.name != m[2] {
			continue
		}
		n, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			return 0, fmt.Errorf("want %s: %w", rateHelp, err)
		}
		if n = math.Round(n * float64(u.bits)); n < float64(minRate) || n > float64(maxRate) {
			return 0, fmt.Errorf("want %s", rateHelp)
		}
		return Rate(n), nil
	}
	names := make([]string, 0, len(rateUnits))
	for _, u := range rateUnits {
		names = append(names, u.name)
	}
	return 0, fmt.Errorf("want %s%s", rateHelp, didYouMean(m[2], names))
}

// String writes the rate in the largest unit that needs no fraction.
func (r Rate) String() string {
	if r <= 0 {
		return unlimited
	}
	for _, u := range rateUnits {
		if r%u.bits == 0 {
			return strconv.FormatInt(int64(r/u.bits), 10) + u.name
		}
	}
	return unlimited // not reached: the last unit divides all
}

// MarshalYAML implements yaml.Marshaler.
func (r Rate) MarshalYAML() (any, error) { return r.String(), nil }
