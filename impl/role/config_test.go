package role

import (
	"strings"
	"testing"
	"time"
)

func TestConfigIsChecked(t *testing.T) {
	tests := []struct {
		config Config
		want   string // "" is fine
	}{
		{Config{Identity: "a_1"}, ""},
		{Config{}, "no identity"},
		{Config{Identity: "a_1", LeaseDuration: 1500 * time.Millisecond}, "whole seconds"},
		{Config{Identity: "a_1", RenewDeadline: 15 * time.Second}, "less than the lease duration"},
		{Config{Identity: "a_1", RetryPeriod: 9 * time.Second}, "less than the renew deadline"},
		{Config{Identity: "a_1", SyncDuration: 15 * time.Second}, "more than the lease duration"},
		{Config{Identity: "a_1", LeaseDuration: 31 * time.Second}, "takes at most 1m0s"},
		{Config{Identity: "a_1", Wait: -1}, "negative"},
	}
	for _, test := range tests {
		_, err := New(test.config)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v: got %v, want %q", test.config, err, test.want)
		}
	}
}
