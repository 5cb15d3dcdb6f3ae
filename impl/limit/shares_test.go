package limit

import "testing"

// TestShares: one key alone takes three quarters; one that comes then has room, and when requests end and begin both
// come to hold the same.
func TestShares(t *testing.T) {
	s := &Shares{Budget: 1600}
	take := func(key string) (n int64, full string) {
		for full = s.Enter(key, 10); full == ""; full = s.Enter(key, 10) {
			n += 10
		}
		return n, full
	}
	if n, full := take("argo"); n != 1200 || full != "each" {
		t.Errorf("one alone takes %d of 1600, and then %q is full", n, full)
	}
	if n, full := take("crossplane"); n != 300 || full != "each" {
		t.Errorf("another one takes %d, and then %q is full", n, full)
	}
	for range 200 { // a request of each ends, and each tries to begin more
		for _, key := range []string{"argo", "crossplane"} {
			if s.held[key] > 0 {
				s.Leave(key, 10)
			}
		}
		take("crossplane")
		take("argo")
	}
	if a, c := s.held["argo"], s.held["crossplane"]; a > c+20 || c > a+20 || a < 600 {
		t.Errorf("after a while one holds %d and the other %d", a, c)
	}
	if full := s.Enter("large", 1601); full != "sum" {
		t.Errorf("more than there is: %q", full)
	}
	for key, n := range s.held {
		for range n / 10 {
			s.Leave(key, 10)
		}
	}
	if s.Held() != 0 || len(s.held) != 0 {
		t.Errorf("%d bytes and %d keys are left", s.Held(), len(s.held))
	}
}
