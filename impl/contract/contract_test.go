package contract

import "testing"

func TestTerm(t *testing.T) {
	want := Term{Incarnation: "a1", Version: 42}
	if got, err := ParseTerm(want.String()); err != nil || got != want {
		t.Errorf("%v, %v", got, err)
	}
	for _, s := range []string{"", "/", "a1", "a1/", "/42", "a1/0", "a1/x", "a1/-1"} {
		if _, err := ParseTerm(s); err == nil {
			t.Errorf("%q was accepted", s)
		}
	}
}

func TestNames(t *testing.T) {
	if got := FeedPath("", "v1", "endpoints"); got != "/weir/v1/feed/core/v1/endpoints" {
		t.Error(got)
	}
	if got := NodeOfIdentity("edge-1_5d41"); got != "edge-1" {
		t.Error(got)
	}
}
