package nodejob

import (
	"errors"
	"fmt"
	"time"

	poolv1 "github.com/weir-edge/weir/impl/pool"
)

// WindowHours are a window as people read it.
func WindowHours(w poolv1.ImageWindow) string { return w.Start + "-" + w.End + " " + zoneOf(w) }

func zoneOf(w poolv1.ImageWindow) string {
	if w.TimeZone == "" { // a Pool of a test, which no CRD has filled
		return "UTC"
	}
	return w.TimeZone
}

// WindowOpen reports whether one of the windows is open, by the clock on the wall there. Without a window it is always.
// One that is invalid is closed, and told.
func WindowOpen(all []poolv1.ImageWindow, at time.Time) (open bool, err error) {
	var failed []error
	for _, w := range all {
		is, err := opens(w, at)
		open = open || is
		if err != nil {
			failed = append(failed, err)
		}
	}
	return open || len(all) == 0, errors.Join(failed...)
}

func opens(w poolv1.ImageWindow, at time.Time) (bool, error) {
	zone, err := time.LoadLocation(zoneOf(w))
	if err != nil {
		return false, fmt.Errorf("spec.images.window timeZone %.80q: want a time zone, as in Europe/Berlin", w.TimeZone)
	}
	start, err := minute("start", w.Start)
	if err != nil {
		return false, err
	}
	end, err := minute("end", w.End)
	if err != nil {
		return false, err
	}
	local := at.In(zone)
	now := local.Hour()*60 + local.Minute()
	if start > end { // over midnight
		return now >= start || now < end, nil
	}
	return now >= start && now < end, nil
}

// minute is that of a day.
func minute(field, text string) (int, error) {
	t, err := time.Parse("15:04", text)
	if err != nil || len(text) != len("15:04") {
		return 0, fmt.Errorf("spec.images.window %s %.80q: want a time of a day, 00:00 to 23:59", field, text)
	}
	return t.Hour()*60 + t.Minute(), nil
}
