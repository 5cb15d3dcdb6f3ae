package member

import (
	"testing"
	"time"
)

func TestHealth(t *testing.T) {
	policy := Probing{
		Interval: 10 * time.Second, Timeout: 2 * time.Second, Failures: 3, Healthy: 2, Away: 10 * time.Second,
		Confirm: time.Second,
	}
	// Each letter is an answer (g good, b bad) and gives one in the second string (H healthy, U not); then the time until
	// the next probe.
	tests := []struct {
		answers, want string
		next          time.Duration
	}{
		{"g", "H", 10 * time.Second},
		{"b", "U", 250 * time.Millisecond},
		{"bb", "UU", 500 * time.Millisecond},
		{"bbbbbbbbb", "UUUUUUUUU", 10 * time.Second},
		{"gb", "HH", time.Second},
		{"gbb", "HHH", time.Second},
		{"gbbb", "HHHU", time.Second},
		{"gbbg", "HHHH", 10 * time.Second},
		{"gbbgbb", "HHHHHH", time.Second},
		{"gbbbg", "HHHUU", time.Second},
		{"gbbbgg", "HHHUUH", 10 * time.Second},
		{"gbbbgbgg", "HHHUUUUH", 10 * time.Second},
	}
	for _, test := range tests {
		var s Health
		got := ""
		for _, a := range test.answers {
			s.Observe(policy, a == 'g')
			got += map[bool]string{true: "H", false: "U"}[s.OK]
		}
		if next := s.Next(policy); got != test.want || next != test.next {
			t.Errorf("%s: got %s, next in %v; want %s, %v", test.answers, got, next, test.want, test.next)
		}
	}
}
