// Package sdnotify reports the state of a service of Type=notify to systemd. Without systemd it does nothing, and that
// is no error.
//
// It starts no goroutine.
package sdnotify
