package nodejob

import (
	"strings"
	"testing"
	"time"

	poolv1 "github.com/weir-edge/weir/impl/pool"
)

// TestOpen: hours are those of the wall clock of their zone, over midnight and when clocks are set.
func TestOpen(t *testing.T) {
	night := poolv1.ImageWindow{Start: "22:00", End: "05:00", TimeZone: "Europe/Berlin"}
	noon := poolv1.ImageWindow{Start: "12:00", End: "12:30"}
	early := poolv1.ImageWindow{Start: "02:30", End: "04:00", TimeZone: "Europe/Berlin"}
	for _, c := range []struct {
		at     string
		window []poolv1.ImageWindow
		want   bool
	}{
		{"2026-11-28T15:00:00Z", nil, true},
		{"2026-11-28T20:59:59Z", []poolv1.ImageWindow{night}, false}, // 21:59:59 in Berlin
		{"2026-11-28T21:00:00Z", []poolv1.ImageWindow{night}, true},
		{"2026-11-28T23:30:00Z", []poolv1.ImageWindow{night}, true}, // past midnight there
		{"2026-11-29T03:59:59Z", []poolv1.ImageWindow{night}, true},
		{"2026-11-29T04:00:00Z", []poolv1.ImageWindow{night}, false},
		{"2026-07-01T20:00:00Z", []poolv1.ImageWindow{night}, true}, // summer: two hours before UTC
		{"2026-07-01T03:00:00Z", []poolv1.ImageWindow{night}, false},
		{"2026-11-28T11:59:00Z", []poolv1.ImageWindow{night, noon}, false},
		{"2026-11-28T12:00:00Z", []poolv1.ImageWindow{night, noon}, true},
		{"2026-11-28T12:30:00Z", []poolv1.ImageWindow{night, noon}, false},
		// In the night of 29 March 2026 it is 03:00 right after 01:59:59: what begins at 02:30 begins then.
		{"2026-03-29T00:59:59Z", []poolv1.ImageWindow{early}, false},
		{"2026-03-29T01:00:00Z", []poolv1.ImageWindow{early}, true},
		{"2026-03-29T02:00:00Z", []poolv1.ImageWindow{early}, false},
		// In that of 25 October 2026 the hour from 02:00 comes twice, and so does its second half.
		{"2026-10-25T00:29:00Z", []poolv1.ImageWindow{early}, false},
		{"2026-10-25T00:30:00Z", []poolv1.ImageWindow{early}, true},
		{"2026-10-25T01:00:00Z", []poolv1.ImageWindow{early}, false},
		{"2026-10-25T01:30:00Z", []poolv1.ImageWindow{early}, true},
		{"2026-10-25T03:00:00Z", []poolv1.ImageWindow{early}, false},
	} {
		at, err := time.Parse(time.RFC3339, c.at)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := WindowOpen(c.window, at); err != nil || got != c.want {
			t.Errorf("%s in %v: %t, %v, want %t", c.at, c.window, got, err, c.want)
		}
	}
}

// TestInvalidWindow: a window that is invalid, which a CRD of before let in, is closed and told. Others count.
func TestInvalidWindow(t *testing.T) {
	at := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	for want, w := range map[string]poolv1.ImageWindow{
		`timeZone "Europe/Atlantis"`: {Start: "00:00", End: "23:59", TimeZone: "Europe/Atlantis"},
		`start "24:00"`:              {Start: "24:00", End: "23:59"},
		`end "9:00"`:                 {Start: "08:00", End: "9:00"},
		`end ""`:                     {Start: "08:00"},
	} {
		open, err := WindowOpen([]poolv1.ImageWindow{w}, at)
		if open || err == nil || !strings.Contains(err.Error(), "spec.images.window "+want) {
			t.Errorf("%v: %t, %v", w, open, err)
		}
		if open, err = WindowOpen([]poolv1.ImageWindow{w, {Start: "11:00", End: "13:00"}}, at); !open || err == nil {
			t.Errorf("%v beside a valid one: %t, %v", w, open, err)
		}
	}
}
