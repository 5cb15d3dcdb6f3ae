package contract

import "testing"

func TestNames(t *testing.T) {
	if got := NodeOfIdentity("edge-1_5d41"); got != "edge-1" {
		t.Error(got)
	}
}

func TestPoolAddress(t *testing.T) {
	for s, good := range map[string]bool{
		"10.0.0.7:10269": true, "[fd00::1]:10269": true, "127.0.0.1:1": true, "reverse": true,
		"": false, "10.0.0.7": false, "10.0.0.7:0": false, "10.0.0.7:70000": false, "0.0.0.0:10269": false,
		"[::]:10269": false, "node-1:10269": false,
		"169.254.169.254:80": false, "[fe80::1]:80": false, "[::ffff:169.254.169.254]:80": false,
		"[::ffff:0.0.0.0]:22": false, "224.0.0.1:80": false, "[ff02::1]:80": false,
		"[fe80::1%lo]:80": false,
		"224.0.0.1:10269": false, "[fe80::1%eth0]:10269": false, "10.0.0.7:10269/x": false, "x 10.0.0.7:10269": false,
	} {
		if _, _, err := ParsePoolAddress(s); (err == nil) != good {
			t.Errorf("%q: %v", s, err)
		}
	}
}
