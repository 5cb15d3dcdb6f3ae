package link

import (
	"testing"
	"time"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func at(ms int) time.Time { return epoch.Add(time.Duration(ms) * time.Millisecond) }

// sentAt returns when a ticket is or will be sent, seen from now.
func sentAt(t *testing.T, m *meter, now time.Time, ticket float64) time.Duration {
	t.Helper()
	when, _ := m.sent(now, ticket)
	return when.Sub(epoch).Round(time.Microsecond)
}

func TestMeterSharesOneWire(t *testing.T) {
	m := newMeter(epoch, 8_000_000, 0) // one byte a microsecond
	a, b, c := m.reserve(at(0), 1000), m.reserve(at(0), 2000), m.reserve(at(0), 500)
	for _, tc := range []struct {
		name   string
		ticket float64
		want   time.Duration
	}{{"a", a, time.Millisecond}, {"b", b, 3 * time.Millisecond}, {"c", c, 3500 * time.Microsecond}} {
		if got := sentAt(t, m, at(0), tc.ticket); got != tc.want {
			t.Errorf("%s is sent at %s, want %s", tc.name, got, tc.want)
		}
	}
	if _, ok := m.sent(at(2), b); ok {
		t.Error("b is sent too early")
	}
	if _, ok := m.sent(at(3), b); !ok {
		t.Error("b should be sent")
	}
}

func TestMeterSavesUpNoMoreThanTheBurst(t *testing.T) {
	m := newMeter(epoch, 8_000_000, 500)
	if got := sentAt(t, m, at(0), m.reserve(at(0), 1500)); got != time.Millisecond {
		t.Errorf("first 1500 bytes are sent at %s, want 1ms: the bucket is full at the beginning", got)
	}
	// Idle for a minute, but the bucket holds 500 bytes only.
	if got := sentAt(t, m, at(60_000), m.reserve(at(60_000), 1500)); got != time.Minute+time.Millisecond {
		t.Errorf("after a minute: %s", got)
	}
}

func TestMeterMakesGoodForLateTimers(t *testing.T) {
	m := newMeter(epoch, 8_000_000, 4000)
	now, sent := at(0), 0
	for now.Before(at(1000)) {
		ticket := m.reserve(now, 1000)
		sent += 1000
		when, ok := m.sent(now, ticket)
		for !ok {
			now = when.Add(700 * time.Microsecond) // each timer is late
			_, ok = m.sent(now, ticket)
		}
	}
	if sent < 999_000 || sent > 1_006_000 {
		t.Errorf("%d bytes in a second at 1 MB/s", sent)
	}
}

func TestMeterChangesRateForWhatIsReserved(t *testing.T) {
	m := newMeter(epoch, 8_000_000, 0)
	ticket := m.reserve(at(0), 10_000) // 10 ms
	m.setRate(at(5), 800_000)          // a tenth, with 5000 bytes to go
	if got := sentAt(t, m, at(5), ticket); got != 55*time.Millisecond {
		t.Errorf("slowed down: %s, want 55ms", got)
	}
	m.setRate(at(15), 0)
	if got := sentAt(t, m, at(15), ticket); got != 15*time.Millisecond {
		t.Errorf("unlimited: %s, want 15ms", got)
	}
	m.setRate(at(20), 8_000_000)
	if got := sentAt(t, m, at(20), m.reserve(at(20), 1000)); got != 21*time.Millisecond {
		t.Errorf("limited again: %s, want 21ms", got)
	}
}

func TestMeterPacket(t *testing.T) {
	for bits, want := range map[int64]int{
		0: 32 << 10, 256_000: 1448, 8_000_000: 2000, 100_000_000: 25_000, 1e9: 32 << 10,
	} {
		if got := newMeter(epoch, bits, 0).packet(); got != want {
			t.Errorf("%d bit/s: %d bytes, want %d", bits, got, want)
		}
	}
}
